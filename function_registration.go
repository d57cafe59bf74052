package asterisque

import (
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strings"
)

// Two functions of one number are a mistake of the program, and so is a function that comes, or
// goes, while peers call it. As with the patterns of net/http it panics where it is made, with both
// of its places.

// here returns the place, as file:line, at which the program has called this package.
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

// library is the directory of this package. The names of functions would not tell: a closure of a
// function that was inlined is named after who calls that.
var library = func() string {
	_, file, _, _ := runtime.Caller(0)
	return path.Dir(file)
}()

// below is how the names of functions begin that belong to packages below this one, which may be in
// other directories: some are modules of their own.
const below = "github.com/asterisque-go/asterisque/"

// isLibrary reports whether f runs code of this package, or of one below it that calls this one for
// a program. Tests are programs.
func isLibrary(f runtime.Frame) bool {
	ours := path.Dir(f.File) == library || strings.HasPrefix(f.Function, below)
	return ours && !strings.HasSuffix(f.File, "_test.go")
}

// beginOf returns where a function begins, as file:line.
func beginOf(function any) string {
	pc := reflect.ValueOf(function).Pointer()
	file, line := runtime.FuncForPC(pc).FileLine(pc)
	return fmt.Sprintf("%s:%d", file, line)
}

// firstStandard is the first of the numbers that belong to the standard functions, which are the
// same for all programs: section 15 of spec/protocol.md lists them.
const firstStandard = 65_280

// standard is an option of those functions, and of no other.
func standard(h *handler) { h.standard = true }

// checkNumber panics if h's number is for standard functions and h is none, or if old, the function
// of that number, is there.
func checkNumber(function uint16, h, old *handler) {
	if function >= firstStandard && !h.standard {
		panic(fmt.Sprintf("asterisque: function %d %q is registered at %s, and numbers from %d on belong to the "+
			"standard functions of the protocol: give it a lower number", function, h.name, h.place, firstStandard))
	}
	if old != nil {
		panic(fmt.Sprintf("asterisque: function %d is registered twice: %q at %s, and before that %q at %s: "+
			"give one of them another number", function, h.name, h.place, old.name, old.place))
	}
}

// checkKey panics if missing: an option has no function that names keys.
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
