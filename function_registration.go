package asterisque

import (
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strings"

	"github.com/asterisque-go/asterisque/internal/call"
)

// Two functions of one number are a programming error, and so is a function that is registered or
// removed while peers call it. As with the patterns of net/http, registration panics, with both
// places.

// here returns the place, as file:line, of the program's call of this package.
func here() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !isLibrary(f) || !more {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
}

// library is the directory of this package. The names of functions are not sufficient: a closure of
// an inlined function has the name of the caller.
var library = func() string {
	_, file, _, _ := runtime.Caller(0)
	return path.Dir(file)
}()

// below is the common prefix of function names in packages below this one, which may be in other
// directories: some are modules of their own.
const below = "github.com/asterisque-go/asterisque/"

// isLibrary reports whether f runs code of this package, or of one below it that calls this one on
// behalf of a program. Tests are programs.
func isLibrary(f runtime.Frame) bool {
	ours := path.Dir(f.File) == library || strings.HasPrefix(f.Function, below)
	return ours && !strings.HasSuffix(f.File, "_test.go")
}

// beginOf returns the begin of a function, as file:line.
func beginOf(function any) string {
	pc := reflect.ValueOf(function).Pointer()
	file, line := runtime.FuncForPC(pc).FileLine(pc)
	return fmt.Sprintf("%s:%d", file, line)
}

// standard is an option of the standard functions only.
func standard(h *functionHandler) { h.standard = true }

// checkNumber panics if h has the number of a standard function without being one, or if the number
// is taken by old.
func checkNumber(function uint16, h, old *functionHandler) {
	if function >= call.FirstStandard && !h.standard {
		panic(fmt.Sprintf("asterisque: function %d %q is registered at %s, and numbers from %d on belong to the "+
			"standard functions of the protocol: give it a lower number", function, h.Name, h.place, call.FirstStandard))
	}
	if old != nil {
		panic(fmt.Sprintf("asterisque: function %d is registered twice: %q at %s, and before that %q at %s: "+
			"give one of them another number", function, h.Name, h.place, old.Name, old.place))
	}
}

// checkKey panics if missing: an option has no key function.
func checkKey(option string, missing bool) {
	if missing {
		panic(fmt.Sprintf("asterisque: %s of nil at %s: name a key, or leave the option out", option, here()))
	}
}

// checkHandler panics if missing: a function has no handler.
func checkHandler(function uint16, name string, missing bool) {
	if missing {
		panic(fmt.Sprintf("asterisque: function %d %q is registered at %s with a nil handler: "+
			"register a function that runs its calls", function, name, here()))
	}
}
