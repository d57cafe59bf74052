package asterisquetest

import (
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
)

// place returns the file:line at which the program has called the library on this goroutine to make
// a call. Interceptors of the program may be between that and the caller of place.
func place() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for entered, more := false, true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case isLibrary(f):
			entered = entered || isEntry(f.Function)
		case entered && !strings.HasPrefix(f.Function, "runtime."):
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
	return begin()
}

// begin returns the place at which this goroutine was started: "go Greet.Call(…)" leaves no other
// trace.
func begin() string {
	_, created, _ := strings.Cut(string(debug.Stack()), "\ncreated by ")
	_, at, _ := strings.Cut(created, "\n\t")
	at, _, _ = strings.Cut(at, "\n")
	at, _, _ = strings.Cut(at, " +0x")
	return at
}

// isEntry reports whether programs make calls with a function of the library.
func isEntry(function string) bool {
	name := function[strings.LastIndexByte(function, '.')+1:]
	return name == "Call" || name == "Open" || name == "CallOn" || name == "OpenOn"
}

// directory is that of this package.
var directory = func() string {
	_, file, _, _ := runtime.Caller(0)
	return path.Dir(file)
}()

// isLibrary reports whether f runs code of package asterisque, or of this one. Tests of them are
// programs.
func isLibrary(f runtime.Frame) bool {
	dir := path.Dir(f.File)
	return (dir == directory || dir == path.Dir(directory)) && !strings.HasSuffix(f.File, "_test.go")
}
