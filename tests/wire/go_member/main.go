// A member with franz-go, for tests: it polls, and does what the lines of its standard input ask.
//
//	go run . ADDRESS GROUP TOPIC ASSIGNOR SESSION_MS [INSTANCE]
//
// KCOORD_TOKEN is the password. The assignor `server` stands for the consumer protocol, with the server's `uniform`.
// With KCOORD_TRANSACTIONAL_ID it can commit in transactions. It answers each line with one line: "= " and what was asked for, or "! " and the error.
// Partitions that it has to give up are a line of their own: "revoked 0 1".
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

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

var (
	group, topic = os.Args[2], os.Args[3]
	session      *kgo.GroupTransactSession
	mutex        sync.Mutex
	owned        = map[int32]bool{}
)

func text(partitions []int32) string {
	var words []string
	for _, partition := range partitions {
		words = append(words, strconv.Itoa(int(partition)))
	}
	return strings.Join(words, " ")
}

func assigned(_ context.Context, _ *kgo.Client, added map[string][]int32) {
	mutex.Lock()
	defer mutex.Unlock()
	for _, partition := range added[topic] {
		owned[partition] = true
	}
}

func revoked(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	mutex.Lock()
	defer mutex.Unlock()
	for _, partition := range lost[topic] {
		delete(owned, partition)
	}
	fmt.Println("revoked", text(lost[topic]))
}

func numbers() string {
	mutex.Lock()
	defer mutex.Unlock()
	var found []int32
	for partition := range owned {
		found = append(found, partition)
	}
	return text(found)
}

// commit commits an offset and returns the error of its partition.
func commit(client *kgo.Client, partition int32, offset int64) (err error) {
	offsets := map[string]map[int32]kgo.EpochOffset{topic: {partition: {Epoch: -1, Offset: offset}}}
	client.CommitOffsetsSync(context.Background(), offsets,
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, failed error) {
			if failed != nil {
				err = failed
				return
			}
			err = kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
		})
	return err
}

// committed asks the coordinator, not the client, which remembers.
func committed(client *kgo.Client, partition int32) (int64, error) {
	request := kmsg.NewPtrOffsetFetchRequest()
	wanted := kmsg.NewOffsetFetchRequestTopic()
	wanted.Topic, wanted.Partitions = topic, []int32{partition}
	request.Group, request.Topics = group, []kmsg.OffsetFetchRequestTopic{wanted}
	answer, err := request.RequestWith(context.Background(), client)
	if err != nil {
		return 0, err
	}
	found := answer.Topics[0].Partitions[0]
	return found.Offset, kerr.ErrorForCode(found.ErrorCode)
}

// transaction commits an offset in a transaction, or aborts that.
func transaction(client *kgo.Client, partition int32, offset int64, end kgo.TransactionEndTry) error {
	client.SetOffsets(map[string]map[int32]kgo.EpochOffset{topic: {partition: {Epoch: -1, Offset: offset}}})
	if err := session.Begin(); err != nil {
		return err
	}
	committed, err := session.End(context.Background(), end)
	if err == nil && committed != bool(end) {
		err = fmt.Errorf("committed: %t", committed)
	}
	return err
}

func answer(client *kgo.Client, words []string) (string, error) {
	var given []int64
	commits := words[len(words)-1] == "commit"
	if words[0] == "transaction" {
		words = words[:3]
	}
	for _, word := range words[1:] {
		number, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return "", err
		}
		given = append(given, number)
	}
	switch words[0] {
	case "numbers":
		return numbers(), nil
	case "commit":
		return "", commit(client, int32(given[0]), given[1])
	case "committed":
		offset, err := committed(client, int32(given[0]))
		return strconv.FormatInt(offset, 10), err
	case "transaction":
		return "", transaction(client, int32(given[0]), given[1], kgo.TransactionEndTry(commits))
	}
	return "", fmt.Errorf("nobody knows %q", words[0])
}

func options() []kgo.Opt {
	session, err := strconv.Atoi(os.Args[5])
	if err != nil {
		log.Fatal(err)
	}
	found := []kgo.Opt{
		kgo.SeedBrokers(os.Args[1]),
		kgo.SASL(plain.Auth{User: "member", Pass: os.Getenv("KCOORD_TOKEN")}.AsMechanism()),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.SessionTimeout(time.Duration(session) * time.Millisecond),
		kgo.HeartbeatInterval(500 * time.Millisecond),
		kgo.OnPartitionsAssigned(assigned),
		kgo.OnPartitionsRevoked(revoked),
		kgo.OnPartitionsLost(revoked),
	}
	switch os.Args[4] {
	case "range":
		found = append(found, kgo.Balancers(kgo.RangeBalancer()))
	case "cooperative-sticky":
		found = append(found, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	case "server":
		found = append(found, kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer())
	default:
		log.Fatalf("nobody knows the assignor %q", os.Args[4])
	}
	if len(os.Args) > 6 {
		found = append(found, kgo.InstanceID(os.Args[6]))
	}
	return found
}

// connected is the client, of a session for transactions if there are to be some.
func connected() (client *kgo.Client, err error) {
	id := os.Getenv("KCOORD_TRANSACTIONAL_ID")
	if id == "" {
		return kgo.NewClient(options()...)
	}
	if session, err = kgo.NewGroupTransactSession(append(options(), kgo.TransactionalID(id))...); err == nil {
		client = session.Client()
	}
	return client, err
}

func main() {
	client, err := connected()
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for !client.PollFetches(context.Background()).IsClientClosed() {
		}
	}()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && lines.Text() != "close" {
		if said, err := answer(client, strings.Fields(lines.Text())); err != nil {
			fmt.Println("!", err)
		} else {
			fmt.Println("= " + said)
		}
	}
	client.Close()
	fmt.Println("= closed")
}
