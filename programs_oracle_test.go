package asterisque_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Faults of the library that a test plants in a program.
const (
	aBlock  = "a Block" // is not given to the application
	theRest = "the rest of the Blocks"
)

// loses reports whether the planted fault loses something of this direction now: once in a program,
// in a direction without an excuse.
func (w *way) loses(what string) bool {
	p := w.e.p
	if p.losing != what || w.mayBeLeft() || w.e.mayBeGivenUp() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost == nil {
		p.lost = w
		return true
	}
	return false
}

// TestPrograms_PlantedLoss plays programs that lose Blocks. Each of them has to be detected.
func TestPrograms_PlantedLoss(t *testing.T) {
	matter() // before the bubbles
	for what, sees := range map[string]string{aBlock: "a Block of", theRest: "its Blocks ended early"} {
		t.Run(what, func(t *testing.T) {
			var lost []string // verdicts of programs that have lost something
			for seed := uint64(1); len(lost) < 10; seed++ {
				require.Less(t, seed, uint64(200), "a loss has no place in these programs")
				p := drawProgram(seed)
				if p.ending != unending {
					continue
				}
				p.losing = what
				verdict := p.failure(t, p.play)
				if p.lost == nil {
					require.Empty(t, verdict)
					continue
				}
				require.NotEmpty(t, verdict, "program %d loses %s, and nothing sees it", seed, what)
				lost = append(lost, verdict)
			}
			require.Contains(t, strings.Join(lost, ""), sees)
		})
	}
}

// TestPrograms_GoroutinesLeft fails a program that cannot end. Its bubble panics, and the test
// still reports the failure. The remaining goroutine ends with a process.
func TestPrograms_GoroutinesLeft(t *testing.T) {
	matter() // before the bubble
	const inside = "ASTERISQUE_PROGRAM_THAT_FAILS"
	if os.Getenv(inside) == "" {
		self, err := os.Executable()
		require.NoError(t, err)
		child := exec.Command(self, "-test.run", "^"+t.Name()+"$")
		child.Env = append(os.Environ(), inside+"=1")
		out, err := child.CombinedOutput()
		require.NoErrorf(t, err, "%s", out)
		return
	}
	p := drawProgram(1)
	p.wrong = "a planted failure"
	verdict := p.failure(t, func() {
		p.actors.Go(func() { select {} })
		p.play()
	})
	require.Contains(t, verdict, "a planted failure")
	require.Contains(t, verdict, "-program 1 ")
	require.Contains(t, verdict, "deadlock")
	os.Exit(0) // with the remaining goroutine
}
