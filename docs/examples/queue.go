// A worker of a share group (KIP-932) in Go, with the standard library alone: it prints the lines of text files.
//
//	KCOORD_TOKEN=… go run queue.go DIRECTORY
//
// Partition 3 of topic `lines` is the file DIRECTORY/3.txt, and an offset is a line number. Any number of workers take
// lines of the same files, each line one of them. KCOORD_URL says where the service is; the topic has to exist:
// POST /v1/topics. Go 1.21 or newer.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
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
	"sync"
	"syscall"
	"time"
)

const (
	topic   = "lines"
	held    = time.Second // how long an acquire waits for lines that others release; our own look at the files comes next
	timeout = 10 * time.Second
)

// A Problem is the body of an error; Action says what to do next.
type Problem struct {
	Error_     string `json:"error"`
	Detail     string `json:"detail"`
	Action     string `json:"action"`
	retryAfter time.Duration
}

func (p *Problem) Error() string { return p.Error_ + ": " + p.Detail }

type object map[string]any

// A Lock is the right to settle lines that were acquired together.
type Lock struct {
	Lock      int64      `json:"lock"`
	Partition int        `json:"partition"`
	Offsets   [][2]int64 `json:"offsets"`
}

// Results are those of a settlement, one for each entry.
type Results []struct {
	Lock  int64  `json:"lock"`
	Error string `json:"error"`
	Why   string `json:"why"`
}

// A Worker is a member of the group. The mutex is for what the heartbeats and the work share.
type Worker struct {
	url, token, directory, id string
	mutex                     sync.Mutex
	epoch                     int // 0: not a member; the next heartbeat joins
	partitions                []int
	lock                      time.Duration     // how long what we acquire is ours
	mine                      map[int64][]int64 // by lock: lines that we have and have not settled
	unsent                    []object          // what became of lines; sent with the next acquire
}

// post sends body to a path of the group and decodes the answer into out. Where nothing, or only a proxy, answered, the
// error is a Problem with the action "retry".
func (w *Worker) post(path string, body object, out any) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+w.token)
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

// react returns how long to wait before another attempt, and the error itself if that is of no use.
func (w *Worker) react(err error) (time.Duration, error) {
	var problem *Problem
	if !errors.As(err, &problem) {
		return 0, err
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	switch {
	case problem.Action == "rejoin", problem.Error_ == "GROUP_ID_NOT_FOUND" && w.epoch > 0:
		w.epoch = 0 // the service has released what we had
		log.Print(problem, "; joining again")
		return 100 * time.Millisecond, nil
	case problem.Action == "retry", problem.Action == "rediscover":
		log.Print(problem, "; again")
		return max(problem.retryAfter, 100*time.Millisecond), nil
	}
	return 0, err
}

// heartbeats keeps us in the group, and our locks alive while lines are worked on.
func (w *Worker) heartbeats(ctx context.Context) error {
	renewed := time.Now()
	for {
		wait, err := w.beat()
		if err == nil && time.Since(renewed) > w.lock/3 {
			err = w.renew()
			renewed = time.Now()
		}
		if err != nil {
			if wait, err = w.react(err); err != nil {
				return err
			}
		}
		if pause(ctx, min(wait, w.lock/3)) != nil {
			return nil
		}
	}
}

func (w *Worker) beat() (time.Duration, error) {
	w.mutex.Lock()
	body := object{"member_id": w.id, "member_epoch": w.epoch, "client_id": "queue.go"}
	if w.epoch == 0 {
		body["subscribed_topic_names"] = []string{topic}
	}
	w.mutex.Unlock()
	var answer struct {
		Epoch      int `json:"member_epoch"`
		IntervalMs int `json:"heartbeat_interval_ms"`
		Assignment *struct {
			Topics []struct {
				Partitions []int `json:"partitions"`
			} `json:"topic_partitions"`
		} `json:"assignment"`
	}
	if err := w.post("share-heartbeat", body, &answer); err != nil {
		return 0, err
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.epoch = answer.Epoch
	if answer.Assignment != nil {
		w.partitions = nil
		for _, entry := range answer.Assignment.Topics {
			w.partitions = append(w.partitions, entry.Partitions...)
		}
	}
	return time.Duration(answer.IntervalMs) * time.Millisecond, nil
}

func (w *Worker) renew() error {
	w.mutex.Lock()
	items := []object{}
	for lock, lines := range w.mine {
		items = append(items, object{"lock": lock, "renew": ranges(lines)})
	}
	w.mutex.Unlock()
	if len(items) == 0 {
		return nil
	}
	return w.post("settle", object{"member_id": w.id, "items": items}, &object{})
}

// acquire settles what is done and returns more. Settling twice in the same way does no harm.
func (w *Worker) acquire() ([]Lock, error) {
	w.mutex.Lock()
	body := object{"member_id": w.id, "member_epoch": w.epoch, "max_records": 100, "settle": w.unsent}
	partitions := w.partitions
	w.mutex.Unlock()
	if len(w.unsent) == 0 {
		body["max_wait_ms"] = held.Milliseconds()
	}
	ends := []object{}
	for _, partition := range partitions {
		lines, err := w.read(partition)
		if err != nil {
			return nil, err
		}
		ends = append(ends, object{"topic": topic, "partition": partition, "end_offset": len(lines)})
	}
	body["ends"] = ends
	var answer struct {
		Settled Results `json:"settled"`
		LockMs  int     `json:"lock_ms"`
		Locks   []Lock  `json:"locks"`
	}
	if err := w.post("acquire", body, &answer); err != nil {
		return nil, err
	}
	w.note(answer.Settled)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.lock = time.Duration(answer.LockMs) * time.Millisecond
	for _, lock := range answer.Locks {
		for _, offsets := range lock.Offsets {
			for line := offsets[0]; line <= offsets[1]; line++ {
				w.mine[lock.Lock] = append(w.mine[lock.Lock], line)
			}
		}
	}
	return answer.Locks, nil
}

func (w *Worker) note(results Results) {
	for _, result := range results {
		if result.Error != "NONE" {
			log.Printf("lock %d was lost: %s", result.Lock, result.Why)
		}
	}
	w.unsent = []object{}
}

// work works on the lines of a lock. What is not begun when SIGTERM comes is handed back, to be taken at once.
func (w *Worker) work(ctx context.Context, lock Lock) error {
	file, err := w.read(lock.Partition)
	if err != nil {
		return err
	}
	for _, line := range w.left(lock) {
		if ctx.Err() != nil {
			break
		}
		if line < int64(len(file)) {
			fmt.Println(lock.Partition, line, file[line]) // the work
			w.unsent = append(w.unsent, object{"lock": lock.Lock, "accept": ranges([]int64{line})})
		} else { // comes again after the group's back-off
			w.unsent = append(w.unsent, object{"lock": lock.Lock, "release": ranges([]int64{line}), "error": "no such line"})
		}
		w.mutex.Lock()
		w.mine[lock.Lock] = w.mine[lock.Lock][1:]
		w.mutex.Unlock()
	}
	if left := w.left(lock); len(left) > 0 {
		w.unsent = append(w.unsent, object{"lock": lock.Lock, "release": ranges(left), "delay_ms": 0})
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	delete(w.mine, lock.Lock)
	return nil
}

func (w *Worker) left(lock Lock) []int64 {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.mine[lock.Lock]
}

// read returns the complete lines of a file.
func (w *Worker) read(partition int) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(w.directory, fmt.Sprintf("%d.txt", partition)))
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(content), "\n")
	return lines[:len(lines)-1], nil
}

func ranges(lines []int64) [][2]int64 {
	found := [][2]int64{}
	for _, line := range lines {
		found = append(found, [2]int64{line, line})
	}
	return found
}

func (w *Worker) run(ctx context.Context, failed <-chan error) error {
	for ctx.Err() == nil {
		select {
		case err := <-failed:
			return err
		default:
		}
		w.mutex.Lock()
		joined := w.epoch > 0
		w.mutex.Unlock()
		var locks []Lock
		var err error
		wait := 100 * time.Millisecond
		if joined {
			if locks, err = w.acquire(); err != nil {
				if wait, err = w.react(err); err != nil {
					return err
				}
			}
		}
		for _, lock := range locks {
			if err := w.work(ctx, lock); err != nil {
				return err
			}
		}
		if len(locks) == 0 {
			_ = pause(ctx, wait)
		}
	}
	return nil
}

// end settles, and leaves: what we may still have is released at once, not when its lock ends.
func (w *Worker) end() {
	if len(w.unsent) > 0 {
		var answer struct {
			Items Results `json:"items"`
		}
		if err := w.post("settle", object{"member_id": w.id, "items": w.unsent}, &answer); err != nil {
			log.Print("settle: ", err)
		}
		w.note(answer.Items)
	}
	if err := w.post("share-heartbeat", object{"member_id": w.id, "member_epoch": -1}, &object{}); err != nil {
		log.Print("leave: ", err)
	}
	log.Print("left")
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
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	group := url.PathEscape(environment("KCOORD_GROUP", "lines-goqueue"))
	worker := &Worker{
		url:       environment("KCOORD_URL", "http://127.0.0.1:8000") + "/v1/groups/" + group + "/",
		token:     os.Getenv("KCOORD_TOKEN"),
		directory: os.Args[1],
		id:        hex.EncodeToString(id),
		lock:      30 * time.Second,
		mine:      map[int64][]int64{},
		unsent:    []object{},
	}
	beating, end := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := worker.heartbeats(beating); err != nil {
			failed <- err
		}
	}()
	err := worker.run(ctx, failed)
	end()
	<-ended
	worker.end()
	if err != nil {
		log.Fatal(err)
	}
}
