// A member with kafka-go, for tests: it polls, and does what the lines of its standard input ask.
//
//	go run . ADDRESS GROUP TOPIC SESSION_MS
//
// KCOORD_TOKEN is the password. Lines and answers are those of java_member/Member.java.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"
)

var (
	address, group, topic = os.Args[1], os.Args[2], os.Args[3]
	login                 = plain.Mechanism{Username: "any", Password: os.Getenv("KCOORD_TOKEN")}
	mutex                 sync.Mutex
	generation            *kafka.Generation
)

func text(given *kafka.Generation) string {
	var words []string
	for _, partition := range given.Assignments[topic] {
		words = append(words, strconv.Itoa(partition.ID))
	}
	return strings.Join(words, " ")
}

// follow takes one generation after the other, until the group is closed.
func follow(consumer *kafka.ConsumerGroup) {
	for {
		next, err := consumer.Next(context.Background())
		if errors.Is(err, kafka.ErrGroupClosed) {
			return
		}
		if err != nil {
			log.Println(err)
			continue
		}
		mutex.Lock()
		generation = next
		mutex.Unlock()
		next.Start(func(ctx context.Context) {
			<-ctx.Done()
			mutex.Lock()
			defer mutex.Unlock()
			fmt.Println("revoked", text(next))
			if generation == next {
				generation = nil
			}
		})
	}
}

func committed(partition int) (string, error) {
	client := kafka.Client{Addr: kafka.TCP(address), Transport: &kafka.Transport{SASL: login}}
	asked := kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: {partition}}}
	answer, err := client.OffsetFetch(context.Background(), &asked)
	if err == nil {
		err = answer.Error
	}
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(answer.Topics[topic][0].CommittedOffset, 10), nil
}

func answer(words []string) (string, error) {
	var given []int
	for _, word := range words[1:] {
		number, err := strconv.Atoi(word)
		if err != nil {
			return "", err
		}
		given = append(given, number)
	}
	if words[0] == "committed" {
		return committed(given[0])
	}
	mutex.Lock()
	defer mutex.Unlock()
	switch {
	case words[0] == "numbers" && generation == nil:
		return "", nil
	case words[0] == "numbers":
		return text(generation), nil
	case words[0] == "commit" && generation != nil:
		return "", generation.CommitOffsets(map[string]map[int]int64{topic: {given[0]: int64(given[1])}})
	}
	return "", fmt.Errorf("cannot %q now", words[0])
}

func main() {
	session, err := strconv.Atoi(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	consumer, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                group,
		Brokers:           []string{address},
		Dialer:            &kafka.Dialer{SASLMechanism: login, Timeout: 10 * time.Second},
		Topics:            []string{topic},
		SessionTimeout:    time.Duration(session) * time.Millisecond,
		HeartbeatInterval: 500 * time.Millisecond,
		StartOffset:       kafka.FirstOffset,
	})
	if err != nil {
		log.Fatal(err)
	}
	go follow(consumer)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && lines.Text() != "close" {
		if said, err := answer(strings.Fields(lines.Text())); err != nil {
			fmt.Println("!", err)
		} else {
			fmt.Println("= " + said)
		}
	}
	if err := consumer.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("= closed")
}
