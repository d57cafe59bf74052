// Package weightest measures the memory of values, to test estimates, and to test that memory is
// released.
package weightest

import (
	"math"
	"math/big"
	"reflect"
	"runtime"
	"time"
)

// Grown returns the growth of the heap by the result of f.
func Grown(f func() any) int {
	before := Heap()
	v := f()
	n := Heap() - before
	runtime.KeepAlive(v)
	return n
}

// GrownAtMost is GrownWithin without a lower bound.
func GrownAtMost(most int, f func() any) int { return GrownWithin(math.MinInt, most, f) }

// GrownWithin is Grown, repeated a few times while the result is outside of least to most.
// Concurrent allocations affect one result, but the result of f holds its memory each time.
func GrownWithin(least, most int, f func() any) (n int) {
	for range 5 {
		if n = Grown(f); least <= n && n <= most {
			break
		}
	}
	return n
}

// Allocated returns the bytes allocated while f runs, including garbage and the allocations of
// other goroutines.
func Allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// AllocatedAtMost is Allocated, repeated a few times while the result exceeds most. Other
// goroutines affect one result, but f allocates each time.
func AllocatedAtMost(most int, f func()) (n int) {
	for range 5 {
		if n = Allocated(f); n <= most {
			break
		}
	}
	return n
}

// HeldSince returns the growth of the heap since it was before. It measures again for up to a
// minute while the growth exceeds most: a leak persists, while a buffer that is about to be freed
// does not. A busy machine frees it late.
func HeldSince(before, most int) (grown int) {
	for end := time.Now().Add(time.Minute); ; {
		if grown = Heap() - before; grown <= most || time.Now().After(end) {
			return grown
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // memory is freed without an event
	}
}

// Heap returns the bytes of live objects.
func Heap() int {
	runtime.GC()
	runtime.GC() // the first one only moves the contents of pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Stack returns the size that the stack of a goroutine reaches when it calls f.
func Stack(f func()) int {
	var before, after runtime.MemStats
	runtime.GC() // shrinks the stacks of other goroutines
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

// Held returns a lower bound of the bytes that v, which has no cycles, refers to: the content of
// slices, strings and maps, and the values behind pointers and in interfaces.
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

// boxed returns the memory of a value in an interface. The runtime has preallocated numbers of one
// byte.
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
