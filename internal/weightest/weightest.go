// Package weightest measures what values hold, for tests of what is estimated beforehand, and of
// what is left when it should have been let go.
package weightest

import (
	"math"
	"math/big"
	"reflect"
	"runtime"
	"time"
)

// Grown returns by how many bytes the heap has grown for what f returns.
func Grown(f func() any) int {
	before := Heap()
	v := f()
	n := Heap() - before
	runtime.KeepAlive(v)
	return n
}

// GrownAtMost is GrownWithin with no least.
func GrownAtMost(most int, f func() any) int { return GrownWithin(math.MinInt, most, f) }

// GrownWithin is Grown, which it repeats a few times while that is less than least or more than
// most: what others allocate or let go meanwhile comes once, what f returns holds its memory each
// time.
func GrownWithin(least, most int, f func() any) (n int) {
	for range 5 {
		if n = Grown(f); least <= n && n <= most {
			break
		}
	}
	return n
}

// Allocated returns how many bytes are allocated while f runs, also what is garbage at its end, and
// what others allocate.
func Allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// AllocatedAtMost is Allocated, which it repeats a few times while that is more than most: what
// others allocate comes once, what f allocates each time.
func AllocatedAtMost(most int, f func()) (n int) {
	for range 5 {
		if n = Allocated(f); n <= most {
			break
		}
	}
	return n
}

// HeldSince returns by how many bytes the heap has grown since it was before. It looks again for a
// minute while that is more than most: a leak is there at each look, while a buffer that is about
// to be freed is not. A busy machine takes its time to free it.
func HeldSince(before, most int) (grown int) {
	for end := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		if grown = Heap() - before; grown <= most || time.Now().After(end) {
			return grown
		}
	}
}

// Heap returns the bytes of live objects.
func Heap() int {
	runtime.GC()
	runtime.GC() // the first one only moves what pools hold
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Stack returns how large the stack of a goroutine that calls f becomes.
func Stack(f func()) int {
	var before, after runtime.MemStats
	runtime.GC() // shrinks those of others
	runtime.ReadMemStats(&before)
	done := make(chan struct{})
	go func() { // ends with f
		defer close(done)
		f()
		runtime.ReadMemStats(&after)
	}()
	<-done
	return int(after.StackInuse) - int(before.StackInuse)
}

// Held returns at least how many bytes v refers to, which has no cycles: the content of slices,
// strings and maps, and what is behind pointers and in interfaces.
func Held(v reflect.Value) (n int) {
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		return 0
	case reflect.TypeFor[big.Int]():
		return (v.Addr().Interface().(*big.Int).BitLen() + 7) / 8
	}
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer:
		if !v.IsNil() {
			n = int(v.Type().Elem().Size()) + Held(v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() {
			n = boxed(v.Elem())
		}
	case reflect.Slice:
		n = v.Len() * int(v.Type().Elem().Size())
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			n += Held(v.Index(i))
		}
	case reflect.Map:
		n = v.Len() * int(v.Type().Key().Size()+v.Type().Elem().Size())
		for i := v.MapRange(); i.Next(); {
			n += Held(i.Key()) + Held(i.Value())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += Held(v.Field(i))
		}
	}
	return n
}

// boxed returns what a value in an interface holds. Numbers of one byte are there already.
func boxed(v reflect.Value) int {
	switch {
	case v.Kind() == reflect.Pointer || v.Kind() == reflect.Map:
		return Held(v)
	case v.Type().Size() == 1, v.CanUint() && v.Uint() < 256, v.CanInt() && v.Int() >= 0 && v.Int() < 256, v.CanFloat() && v.Float() == 0:
		return 0
	case v.Type() == reflect.TypeFor[big.Int]():
		return int(v.Type().Size())
	}
	return int(v.Type().Size()) + Held(v)
}
