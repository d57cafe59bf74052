//go:build unix

package chaos

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// entry is a line of a register: a function has begun, or ended, for a call.
type entry struct {
	At      int64  `json:"at"` // microseconds since 1970
	Replica string `json:"replica"`
	Process int    `json:"process"`
	Call    int64  `json:"call"` // its number
	Run     string `json:"run"`
	What    string `json:"what"` // begun or ended
}

const (
	begun = "begun"
	ended = "ended"
)

// register records, next to a replica, the runs of its functions. The entries survive the process.
type register struct {
	file    *os.File // these are fixed
	replica string
}

func openRegister(path, replica string) (*register, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &register{f, replica}, err
}

// note adds a line, in one write. It is safe for concurrent use.
func (r *register) note(call int64, run, what string) error {
	line, err := json.Marshal(entry{time.Now().UnixMicro(), r.replica, os.Getpid(), call, run, what})
	if err != nil {
		return err
	}
	_, err = r.file.Write(append(line, '\n'))
	return err
}

// run is one run of a function.
type run struct {
	id             string
	replica        string
	process        int
	began, stopped time.Time // stopped is zero if it has not ended
}

func (r run) String() string {
	text := fmt.Sprintf("%s  run %s begins at %s, process %d", clock(r.began), r.id, r.replica, r.process)
	if r.stopped.IsZero() {
		return text + ", and does not end"
	}
	return text + ", and ends at " + clock(r.stopped)
}

// clock writes a time of the day.
func clock(t time.Time) string { return t.Format("15:04:05.000") }

// readRegisters returns the entries of all registers in dir, by the numbers of the calls.
func readRegisters(t testing.TB, dir string) map[int64][]*run {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+registerSuffix))
	require.NoError(t, err)
	all := make(map[int64][]*run)
	for _, name := range files {
		readRegister(t, name, all)
	}
	return all
}

const registerSuffix = ".register"

func readRegister(t testing.TB, name string, all map[int64][]*run) {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	byID := make(map[string]*run)
	for in := bufio.NewScanner(f); in.Scan(); {
		var e entry
		require.NoError(t, json.Unmarshal(in.Bytes(), &e), "a line of %s", name)
		switch at := time.UnixMicro(e.At); e.What {
		case begun:
			byID[e.Run] = &run{id: e.Run, replica: e.Replica, process: e.Process, began: at}
			all[e.Call] = append(all[e.Call], byID[e.Run])
		case ended:
			require.Contains(t, byID, e.Run, "a run of %s that has not begun", name)
			byID[e.Run].stopped = at
		}
	}
}
