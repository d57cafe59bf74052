//go:build !unix

package wire

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// duplicate says that there is no such thing here.
func duplicate(int, string) (*os.File, error) {
	return nil, fmt.Errorf("%w: sockets are not inherited on %s; listen with wire.Listen", errors.ErrUnsupported, runtime.GOOS)
}
