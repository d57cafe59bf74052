//go:build !unix

package wire

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// duplicate fails: this system has no inherited sockets.
func duplicate(int, string) (*os.File, error) {
	return nil, fmt.Errorf("%w: sockets are not inherited on %s; listen with wire.Listen", errors.ErrUnsupported, runtime.GOOS)
}
