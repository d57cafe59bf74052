package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
)

// journal records the calls that a process has made and run, a line for each event, in a file that
// survives the process.
type journal struct {
	file *os.File // fixed

	mu   sync.Mutex
	last map[string]uint64 // guarded by mu; the number of the last call, by caller
}

// event is an event of a call.
type event string

const (
	made     event = "made"     // it is about to be made
	answered event = "answered" // its caller has the answer
	failed   event = "failed"   // its caller has an error, and the call may have run
	refused  event = "refused"  // its caller has an error that denies that the call ran
	ran      event = "ran"      // it has run, and the answer is about to be sent
	noted    event = "noted"    // another event, which is counted at the end
)

// Events of calls and of sessions in the journal.
const (
	madeAgain         = "made again with the same key, since they may have run"
	fromAnother       = "answered by another replica than ran them, from the record"
	resumedThere      = "sessions resumed at the replica that has them"
	resumedElsewhere  = "sessions resumed through another replica"
	resumedInNATS     = "sessions resumed when NATS was back"
	resumedAtExchange = "sessions resumed with the exchange"
)

// entry is a line of a journal.
type entry struct {
	event event
	call  number
	why   string // of failed and refused; of noted the event; of made and ran the way, or empty
}

const (
	// throughExchange marks calls from and to nodes at the exchange.
	throughExchange = "through the exchange"

	// withItsCaller is the reason for the failure of a call with a killed caller.
	withItsCaller = "its caller was killed"

	// atOnce is how many lines are sent together.
	atOnce = 500
)

// openJournal opens the journal of a process, which may exist from an earlier run. Calls that were
// open when the process was killed have failed with it.
func openJournal(name string) (*journal, error) {
	before, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	before = before[:bytes.LastIndexByte(before, '\n')+1] // half a line had no effect
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{file: file, last: make(map[string]uint64)}
	if err := errors.Join(file.Truncate(int64(len(before))), j.resume(before)); err != nil {
		file.Close()
		return nil, fmt.Errorf("the journal %s: %w", name, err)
	}
	return j, nil
}

// resume reads the lines of an earlier run of the process.
func (j *journal) resume(before []byte) error {
	open := make(map[number]bool)
	for line := range bytes.Lines(before) {
		e, err := parseEntry(string(line))
		switch {
		case err != nil:
			return err
		case e.event == made:
			open[e.call] = true
			j.last[e.call.Caller] = max(e.call.N, j.last[e.call.Caller])
		case e.event != ran && e.event != noted:
			delete(open, e.call)
		}
	}
	for call := range open {
		if err := j.write(entry{failed, call, withItsCaller}); err != nil {
			return err
		}
	}
	return nil
}

// begin gives a call its number.
func (j *journal) begin(caller, way string) (number, error) {
	j.mu.Lock()
	j.last[caller]++
	call := number{caller, j.last[caller]}
	j.mu.Unlock()
	return call, j.write(entry{made, call, way})
}

// write writes a line. When it has returned the line survives the process.
func (j *journal) write(e entry) error {
	_, err := j.file.WriteString(e.String() + "\n")
	return err
}

// lines returns all lines.
func (j *journal) lines() ([]string, error) {
	b, err := os.ReadFile(j.file.Name())
	if err != nil || len(b) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n"), nil
}

func (j *journal) close() error { return j.file.Close() }

// String returns e as a line.
func (e entry) String() string {
	s := fmt.Sprintf("%s %s %d", e.event, e.call.Caller, e.call.N)
	if e.why != "" {
		s += " " + e.why
	}
	return s
}

func parseEntry(line string) (e entry, err error) {
	words := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
	if len(words) < 3 {
		return e, fmt.Errorf("%q is no line of a journal", line)
	}
	e.event, e.call.Caller = event(words[0]), words[1]
	if e.call.N, err = strconv.ParseUint(words[2], 10, 64); err != nil {
		return e, fmt.Errorf("%q is no line of a journal: %w", line, err)
	}
	if len(words) == 4 {
		e.why = words[3]
	}
	return e, nil
}
