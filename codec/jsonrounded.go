package codec

import (
	"errors"
	"strconv"
	"strings"

	"github.com/asterisque-go/asterisque/internal/truncate"
)

// Without a type encoding/json decodes every number as a float64, which may change an integer
// beyond 2^53. Integers are never rounded, so such a value is rejected.

// fewestRounded is the minimum number of characters of an integer that a float64 may not hold.
const fewestRounded = 16

// mayBeRounded reports whether data has a run of at least fewestRounded digits. Such a run covers
// at least one of the positions that the loop visits.
func mayBeRounded(data []byte) bool {
	for i := fewestRounded - 1; i < len(data); i += fewestRounded {
		from, to := i, i
		for ; to < len(data) && isDigit(data[to]); to++ {
		}
		if to == i {
			continue
		}
		for ; from > 0 && isDigit(data[from-1]); from-- {
		}
		if to-from >= fewestRounded {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

var errRounded = errors.New("an any becomes a float64: put *big.Int, json.Number or an integer type in its place")

// rounded returns the error for a number that is decoded as a float64, if it is an integer that
// changes.
func rounded(item []byte) *TypeError {
	if len(item) < fewestRounded || strings.TrimLeft(string(item), "-0123456789") != "" {
		return nil
	}
	if f, err := strconv.ParseFloat(string(item), 64); err == nil && strconv.FormatFloat(f, 'f', 0, 64) == string(item) {
		return nil
	}
	return &TypeError{
		Want: "a number that floating point of 64 bits holds exactly", Got: string(truncate.Text(item, mostName)), Err: errRounded,
	}
}
