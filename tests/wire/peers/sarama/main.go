// A member with sarama, for tests: it polls, and does what the lines of its standard input ask.
//
//	go run . ADDRESS GROUP TOPIC SESSION_MS
//
// KCOORD_TOKEN is the password. Lines and answers are those of java_member/Member.java.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

var group, topic = os.Args[2], os.Args[3]

// member is the handler of the group's sessions.
type member struct {
	mutex   sync.Mutex
	session sarama.ConsumerGroupSession
}

func text(partitions []int32) string {
	return strings.Trim(fmt.Sprint(partitions), "[]")
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session = session
	return nil
}

func (m *member) Cleanup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session = nil
	fmt.Println("revoked", text(session.Claims()[topic]))
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, _ sarama.ConsumerGroupClaim) error {
	<-session.Context().Done()
	return nil
}

func (m *member) numbers() string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.session == nil {
		return ""
	}
	return text(m.session.Claims()[topic])
}

func (m *member) commit(partition int32, offset int64) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.session == nil {
		return fmt.Errorf("it is not in the group")
	}
	m.session.MarkOffset(topic, partition, offset, "")
	m.session.Commit()
	return nil
}

func committed(client sarama.Client, partition int32) (string, error) {
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return "", err
	}
	answer, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {partition}})
	if err != nil {
		return "", err
	}
	found := answer.GetBlock(topic, partition)
	if found.Err != sarama.ErrNoError {
		return "", found.Err
	}
	return strconv.FormatInt(found.Offset, 10), nil
}

func (m *member) answer(client sarama.Client, words []string) (string, error) {
	var given []int64
	for _, word := range words[1:] {
		number, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return "", err
		}
		given = append(given, number)
	}
	switch words[0] {
	case "numbers":
		return m.numbers(), nil
	case "commit":
		return "", m.commit(int32(given[0]), given[1])
	case "committed":
		return committed(client, int32(given[0]))
	}
	return "", fmt.Errorf("nobody knows %q", words[0])
}

func config() *sarama.Config {
	session, err := strconv.Atoi(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	found := sarama.NewConfig()
	found.Version = sarama.MaxVersion
	found.Net.SASL.Enable = true
	found.Net.SASL.User, found.Net.SASL.Password = "any", os.Getenv("KCOORD_TOKEN")
	found.Consumer.Offsets.AutoCommit.Enable = false
	found.Consumer.Offsets.Initial = sarama.OffsetOldest
	found.Consumer.Group.Session.Timeout = time.Duration(session) * time.Millisecond
	found.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	return found
}

func main() {
	client, err := sarama.NewClient([]string{os.Args[1]}, config())
	if err != nil {
		log.Fatal(err)
	}
	consumer, err := sarama.NewConsumerGroupFromClient(group, client)
	if err != nil {
		log.Fatal(err)
	}
	one, ctx := &member{}, context.Background()
	go func() {
		for {
			if err := consumer.Consume(ctx, []string{topic}, one); err == sarama.ErrClosedConsumerGroup {
				return
			} else if err != nil {
				log.Println(err)
			}
		}
	}()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && lines.Text() != "close" {
		if said, err := one.answer(client, strings.Fields(lines.Text())); err != nil {
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
