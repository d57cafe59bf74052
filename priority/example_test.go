package priority_test

import (
	"fmt"

	"github.com/asterisque-go/asterisque/priority"
)

// A Queue can be used alone, for flows that share one link. Flows of one priority take turns of 4
// KiB, and a higher priority is sent first.
func ExampleQueue() {
	var (
		q      priority.Queue[string]
		video  = priority.Flow[string]{Priority: priority.Normal}
		backup = priority.Flow[string]{Priority: priority.Normal}
		alarm  = priority.Flow[string]{Priority: priority.Max}
	)
	for n := range 4 {
		q.Push(&video, fmt.Sprint("video ", n), 8<<10)
	}
	for n := range 2 {
		q.Push(&backup, fmt.Sprint("backup ", n), 16<<10)
	}
	q.Push(&alarm, "alarm", 100)

	for q.Len() > 0 {
		message, _ := q.Pop()
		fmt.Println(message)
	}
	// Output:
	// alarm
	// video 0
	// video 1
	// backup 0
	// video 2
	// video 3
	// backup 1
}

// A Queue is strict unless Guard reserves a share for lower priorities. Here they get about a
// quarter of the bytes.
func ExampleQueue_Guard() {
	var (
		q    priority.Queue[string]
		high = priority.Flow[string]{Priority: priority.Normal.Up()}
		low  = priority.Flow[string]{Priority: priority.Normal}
	)
	q.Guard(0.25)
	for range 1000 {
		q.Push(&high, "high", 1<<10)
		q.Push(&low, "low", 1<<10)
	}
	left := make(map[string]int)
	for range 1000 {
		message, _ := q.Pop()
		left[message]++
	}
	fmt.Println("high:", left["high"], "low:", left["low"])
	// Output: high: 754 low: 246
}

// Lines order values by priority.
func ExampleLines() {
	var l priority.Lines[string]
	l.Push(priority.Normal, "first")
	l.Push(priority.Normal, "second")
	l.Push(priority.Max, "urgent")
	for l.Len() > 0 {
		v, _ := l.Pop()
		fmt.Println(v)
	}
	// Output:
	// urgent
	// first
	// second
}
