// A worker in Go, in the classic protocol, with the standard library alone: it prints the lines of text files.
//
//	KCOORD_TOKEN=… go run worker.go DIRECTORY
//
// Partition 3 of topic `lines` is the file DIRECTORY/3.txt, and an offset is a line number. Any number of workers share
// the files. KCOORD_URL says where the service is; the topic has to exist: POST /v1/topics. Go 1.21 or newer.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	topic        = "lines"
	assignor     = "range"
	batch        = 20 // lines of a partition between two commits
	held         = 30 * time.Second
	plainTimeout = 10 * time.Second // how long an answer may take, beyond the time for which it may be held
	session      = 10 * time.Second
	beat         = session / 5
	rebalance    = time.Minute // how long the group waits for us to join again: longer than a batch takes
)

var (
	errRejoin    = errors.New("the next request is a join")
	errTopicGone = errors.New("another topic has this name now, or none")
)

// A Problem is the body of an error; Action says what to do next.
type Problem struct {
	Error_     string `json:"error"`
	Detail     string `json:"detail"`
	Action     string `json:"action"`
	MemberID   string `json:"member_id"`
	retryAfter time.Duration
}

func (p *Problem) Error() string { return p.Error_ + ": " + p.Detail }

type object map[string]any

// A Member is this worker as the group knows it.
type Member struct {
	url, token, directory string
	id                    string // "": the next join asks for one
	generation            int
	topicID               string // of the offsets that we know: a topic that is created again has another id
}

// post sends body to a path below /v1 and decodes the answer into out. Where nothing, or only a proxy, answered, the
// error is a Problem with the action "retry".
func (m *Member) post(ctx context.Context, path string, body object, out any, hold time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, hold+plainTimeout)
	defer cancel()
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+m.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return &Problem{Error_: "no answer", Detail: err.Error(), Action: "retry", retryAfter: time.Second}
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return json.NewDecoder(response.Body).Decode(out)
	}
	problem := &Problem{Error_: response.Status, Action: "retry", retryAfter: time.Second}
	_ = json.NewDecoder(response.Body).Decode(problem) // a proxy's answer is not JSON, and stays "retry"
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		problem.retryAfter = time.Duration(seconds) * time.Second
	}
	return problem
}

// insist sends a request again while the answer is "retry".
func (m *Member) insist(ctx context.Context, path string, body object, out any) error {
	for {
		err := m.post(ctx, path, body, out, 0)
		problem, again := retriable(err)
		if !again {
			return err
		}
		log.Print(path, ": ", problem, "; again")
		if pause(ctx, problem.retryAfter) != nil {
			return err
		}
	}
}

func retriable(err error) (*Problem, bool) {
	var problem *Problem
	return problem, errors.As(err, &problem) && (problem.Action == "retry" || problem.Action == "rediscover")
}

// join returns the partitions that the leader gave us. It sends joins and syncs until both succeed.
func (m *Member) join(ctx context.Context) ([]int, error) {
	for {
		partitions, err := m.joinOnce(ctx)
		if err == nil {
			return partitions, nil
		}
		if err = m.react(ctx, err); err != nil && !errors.Is(err, errRejoin) {
			return nil, err
		}
	}
}

func (m *Member) joinOnce(ctx context.Context) ([]int, error) {
	var joined struct {
		MemberID       string            `json:"member_id"`
		GenerationID   int               `json:"generation_id"`
		ProtocolName   string            `json:"protocol_name"`
		Leader         string            `json:"leader"`
		SkipAssignment bool              `json:"skip_assignment"`
		Members        []json.RawMessage `json:"members"`
	}
	err := m.post(ctx, m.path("join"), object{
		"member_id": m.id, "client_id": "worker.go", "protocol_type": "consumer",
		"session_timeout_ms": session.Milliseconds(), "rebalance_timeout_ms": rebalance.Milliseconds(),
		"protocols":   []object{{"name": assignor, "subscription": object{"topics": []string{topic}}}},
		"max_wait_ms": held.Milliseconds(),
	}, &joined, held)
	if err != nil {
		return nil, err
	}
	m.id, m.generation = joined.MemberID, joined.GenerationID
	var led struct {
		Assignments []json.RawMessage `json:"assignments"`
	}
	led.Assignments = []json.RawMessage{}
	if joined.Leader == m.id && !joined.SkipAssignment {
		// The leader says who gets what; the service computes it.
		err = m.insist(ctx, "/assign", object{"assignor": joined.ProtocolName, "members": joined.Members}, &led)
		if err != nil {
			return nil, err
		}
	}
	return m.sync(ctx, joined.ProtocolName, led.Assignments)
}

func (m *Member) sync(ctx context.Context, protocol string, assignments []json.RawMessage) ([]int, error) {
	var synced struct {
		Partitions map[string][]int `json:"partitions"`
	}
	for {
		err := m.post(ctx, m.path("sync"), object{
			"member_id": m.id, "generation_id": m.generation, "protocol_type": "consumer", "protocol_name": protocol,
			"assignments": assignments, "max_wait_ms": held.Milliseconds(),
		}, &synced, held)
		var problem *Problem
		if !errors.As(err, &problem) || problem.Error_ != "REBALANCE_IN_PROGRESS" || problem.Action != "retry" {
			return synced.Partitions[topic], err
		}
		// The wait was over before the leader had synced: the same request again.
	}
}

// react changes our identity as an error demands, and waits if it is to be tried again. It returns nil if the same
// request is to be sent again, errRejoin if the next one is a join, and the error itself if it is of no use to go on.
func (m *Member) react(ctx context.Context, err error) error {
	var problem *Problem
	if ctx.Err() != nil || !errors.As(err, &problem) {
		return err
	}
	switch problem.Error_ {
	case "MEMBER_ID_REQUIRED":
		m.id = problem.MemberID
		return errRejoin
	case "UNKNOWN_MEMBER_ID": // our session ended, or an operator removed us
		log.Print(problem)
		m.id = ""
		return errRejoin
	case "REBALANCE_IN_PROGRESS":
		if problem.Action == "retry" && problem.MemberID != "" { // a join that waited
			m.id = problem.MemberID
		}
		return errRejoin
	case "ILLEGAL_GENERATION": // the group went on without us
		log.Print(problem)
		return errRejoin
	}
	if _, again := retriable(err); !again {
		return err
	}
	log.Print(problem, "; again")
	return pause(ctx, problem.retryAfter)
}

// heartbeats keeps us in the group while lines are processed. What ends the generation is sent to over. An answer that
// takes a third of the session is not waited for: there must be time for another attempt.
func (m *Member) heartbeats(ctx context.Context, body object, over chan<- error) {
	for pause(ctx, beat) == nil {
		attempt, cancel := context.WithTimeout(ctx, session/3)
		err := m.post(attempt, m.path("heartbeat"), body, &object{}, 0)
		cancel()
		if _, again := retriable(err); err != nil && !again {
			over <- err
			return
		}
	}
}

// work processes our partitions until the generation is over, or until SIGTERM. All that was processed is committed.
func (m *Member) work(ctx context.Context, partitions []int, over <-chan error) error {
	offsets, err := m.committed(ctx, partitions)
	if err != nil {
		return err
	}
	for {
		processed := 0
		for _, partition := range partitions {
			select {
			case err := <-over:
				return err
			case <-ctx.Done():
				return ctx.Err()
			default:
			}
			lines, err := m.next(partition, offsets[partition])
			if err != nil {
				return err
			}
			if len(lines) == 0 {
				continue
			}
			for i, line := range lines {
				fmt.Println(partition, offsets[partition]+i, line) // the work
			}
			processed += len(lines)
			err = m.commit(partition, offsets[partition]+len(lines))
			if errors.Is(err, errTopicGone) { // nothing that we know counts there
				log.Print(err)
				if offsets, err = m.committed(ctx, partitions); err != nil {
					return err
				}
				break
			}
			if err != nil {
				return err
			}
			offsets[partition] += len(lines)
		}
		if processed == 0 {
			select {
			case err := <-over:
				return err
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

// next reads at most batch lines of a partition; a line without its end is still being written.
func (m *Member) next(partition, offset int) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(m.directory, fmt.Sprintf("%d.txt", partition)))
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(content), "\n")
	lines = lines[:len(lines)-1]
	return lines[min(offset, len(lines)):min(offset+batch, len(lines))], nil
}

// committed returns where to go on with each partition.
func (m *Member) committed(ctx context.Context, partitions []int) (map[int]int, error) {
	if len(partitions) == 0 {
		return nil, nil
	}
	var found struct {
		Topics []struct {
			TopicID    string `json:"topic_id"`
			Partitions []struct {
				Partition       int    `json:"partition"`
				CommittedOffset int    `json:"committed_offset"`
				Error           string `json:"error"`
			} `json:"partitions"`
		} `json:"topics"`
	}
	body := object{"topics": []object{{"name": topic, "partitions": partitions}}, "require_stable": true}
	if err := m.insist(ctx, m.path("offsets/fetch"), body, &found); err != nil {
		return nil, err
	}
	if m.topicID = found.Topics[0].TopicID; m.topicID == "" {
		return nil, fmt.Errorf("topic %s does not exist", topic)
	}
	offsets := map[int]int{}
	for _, p := range found.Topics[0].Partitions {
		if p.Error != "NONE" {
			return nil, fmt.Errorf("fetch of partition %d: %s", p.Partition, p.Error)
		}
		offsets[p.Partition] = max(0, p.CommittedOffset) // -1: nothing committed yet
	}
	return offsets, nil
}

// commit commits until it is stored or refused. SIGTERM does not interrupt it: the next owner begins where it says. After
// a session without an answer there is nothing left to commit for.
func (m *Member) commit(partition, offset int) error {
	ctx, cancel := context.WithTimeout(context.Background(), session)
	defer cancel()
	var done struct {
		Topics []struct {
			Partitions []struct {
				Error string `json:"error"`
			} `json:"partitions"`
		} `json:"topics"`
	}
	body := object{"member_id": m.id, "generation_id_or_member_epoch": m.generation, "topics": []object{
		{"topic_id": m.topicID, "partitions": []object{{"partition": partition, "committed_offset": offset}}}}}
	if err := m.insist(ctx, m.path("offsets/commit"), body, &done); err != nil {
		return err
	}
	switch result := done.Topics[0].Partitions[0].Error; result {
	case "NONE":
		return nil
	case "UNKNOWN_TOPIC_ID":
		return errTopicGone
	default:
		return fmt.Errorf("commit of partition %d: %s", partition, result)
	}
}

// leave gives our partitions to the others at once, instead of when our session ends.
func (m *Member) leave() {
	if m.id == "" {
		return
	}
	body := object{"members": []object{{"member_id": m.id, "reason": "SIGTERM"}}}
	if err := m.post(context.Background(), m.path("leave"), body, &object{}, 0); err != nil {
		log.Print("leave: ", err)
	}
	log.Print("left")
}

func (m *Member) path(call string) string {
	return "/groups/" + url.PathEscape(environment("KCOORD_GROUP", "lines-go")) + "/" + call
}

// run is a member's life: join, work until the generation is over, join again.
func (m *Member) run(ctx context.Context) error {
	for {
		partitions, err := m.join(ctx)
		if err != nil {
			return err
		}
		log.Print("assigned: ", partitions)
		over := make(chan error, 1)
		generation, end := context.WithCancel(ctx)
		go m.heartbeats(generation, object{"member_id": m.id, "generation_id": m.generation}, over)
		err = m.work(ctx, partitions, over)
		end()
		if err = m.react(ctx, err); err != nil && !errors.Is(err, errRejoin) {
			return err
		}
	}
}

func pause(ctx context.Context, duration time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return nil
	}
}

func environment(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	member := &Member{
		url:       environment("KCOORD_URL", "http://127.0.0.1:8000") + "/v1",
		token:     os.Getenv("KCOORD_TOKEN"),
		directory: os.Args[1],
	}
	err := member.run(ctx)
	member.leave()
	if ctx.Err() == nil {
		log.Fatal(err)
	}
}
