// A worker with franz-go: it prints the lines of text files, which a group of workers shares.
//
//	KCOORD_TOKEN=… go run . DIRECTORY
//
// Partition 3 of topic `lines` is the file DIRECTORY/3.txt, and an offset is a line number. The topic has to exist.
// KCOORD_KAFKA says where the service listens for Kafka clients.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

const (
	topic = "lines"
	batch = 20 // lines of a partition between two commits
)

var (
	mutex  sync.Mutex
	places = map[int32]int64{} // partition -> the next line
)

func env(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// assigned learns where to begin: the committed offsets, as the client has just fetched them.
func assigned(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	mutex.Lock()
	defer mutex.Unlock()
	for partition, offset := range offsets[topic] {
		places[partition] = max(offset.EpochOffset().Offset, 0)
	}
	return offsets, nil
}

func revoked(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	mutex.Lock()
	defer mutex.Unlock()
	for _, partition := range lost[topic] {
		delete(places, partition)
	}
}

// work prints and commits the next lines of each partition. No partition is given away meanwhile.
func work(client *kgo.Client, directory string) error {
	mutex.Lock()
	defer mutex.Unlock()
	commits := map[int32]kgo.EpochOffset{}
	for partition, from := range places {
		content, err := os.ReadFile(filepath.Join(directory, fmt.Sprintf("%d.txt", partition)))
		if err != nil {
			return err
		}
		lines := bytes.Split(content, []byte("\n"))
		to := min(from+batch, int64(len(lines)-1))
		for number := from; number < to; number++ {
			fmt.Println(partition, number, string(lines[number]))
		}
		if to > from {
			places[partition] = to
			commits[partition] = kgo.EpochOffset{Epoch: -1, Offset: to}
		}
	}
	if len(commits) > 0 {
		limit, done := context.WithTimeout(context.Background(), 5*time.Second) // what is not committed may be done again
		defer done()
		client.CommitOffsetsSync(limit, map[string]map[int32]kgo.EpochOffset{topic: commits}, nil)
	}
	return nil
}

func main() {
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(env("KCOORD_KAFKA", "127.0.0.1:9092")),
		kgo.SASL(plain.Auth{User: "worker", Pass: os.Getenv("KCOORD_TOKEN")}.AsMechanism()),
		kgo.ConsumerGroup(env("KCOORD_GROUP", "lines-franz-go")),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.SessionTimeout(10*time.Second),
		kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.AdjustFetchOffsetsFn(assigned),
		kgo.OnPartitionsRevoked(revoked),
		kgo.OnPartitionsLost(revoked),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for stop.Err() == nil {
		poll, done := context.WithTimeout(stop, 100*time.Millisecond)
		client.PollFetches(poll) // there are never records
		done()
		if err := work(client, os.Args[1]); err != nil {
			log.Fatal(err)
		}
	}
}
