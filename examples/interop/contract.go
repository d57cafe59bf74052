package main

import "github.com/asterisque-go/asterisque"

// The contract. Both sides offer all of it, and peer/service.mjs has the same in another language. Most values are text, which every value codec carries.
var (
	echo    = asterisque.Func[string, string](1, "echo")                     // returns what it gets
	mirror  = asterisque.Func[order, order](2, "mirror")                     // the same, with a value of many types
	sum     = asterisque.Stream[string, int64, struct{}, int64](3, "sum")    // takes numbers until their end, and returns their sum
	count   = asterisque.Stream[int, struct{}, int, int](4, "count")         // sends the numbers from 1 to its parameter, and returns that
	chat    = asterisque.Stream[string, string, string, string](5, "chat")   // sends every Block back, and returns its parameter
	nest    = asterisque.Func[string, string](6, "nest")                     // turns text round: it calls nest of its caller without the first letter, and so on
	ponder  = asterisque.Func[string, string](7, "ponder")                   // runs, under the name that is its parameter, until it is given up
	begun   = asterisque.Func[string, string](8, "begun")                    // returns the name when the ponder of that name has begun
	ended   = asterisque.Func[string, string](9, "ended")                    // returns when the ponder of that name has ended: "canceled" or "expired"
	fail    = asterisque.Func[string, string](10, "fail")                    // fails with the code that is its parameter, message "as asked", detail "why"
	broken  = asterisque.Func[string, string](11, "broken")                  // fails without a code, and with its parameter as the message
	crash   = asterisque.Func[string, string](12, "crash")                   // panics
	inflate = asterisque.Func[string, string](13, "inflate")                 // returns text of so many bytes
	odd     = asterisque.Func[string, any](14, "odd")                        // returns what no codec can encode
	leave   = asterisque.Func[string, string](15, "leave")                   // ends the session in good order, from the callee's side
	sip     = asterisque.Stream[string, string, struct{}, string](16, "sip") // takes three Blocks, and then wants no more; returns after release
	release = asterisque.Func[string, string](17, "release")                 // lets the sip of that name return
	nowhere = asterisque.Func[string, string](99, "nowhere")                 // is offered by neither of them
)

// order is a value with a bit of everything.
type order struct {
	Number   int              `json:"number"`
	Negative int              `json:"negative"`
	Text     string           `json:"text"`
	Flag     bool             `json:"flag"`
	Ratio    float64          `json:"ratio"`
	List     []string         `json:"list"`
	Counts   map[string]int64 `json:"counts"`
	Nothing  *string          `json:"nothing"`
	Edges    []int64          `json:"edges"` // of what a floating-point number holds exactly, and of int64
}
