package main

import "github.com/asterisque-go/asterisque"

// The contract. Both sides offer all of it, and peer/service.mjs has the same in another language.
// Most values are text, which every value codec carries.
var (
	echo = asterisque.Func[string, string](1, "echo") // returns its parameter
	// the same, with a value of many types
	mirror = asterisque.Func[order, order](2, "mirror")
	// takes numbers until their end, and returns their sum
	sum = asterisque.Stream[string, int64, struct{}, int64](3, "sum")
	// sends the numbers from 1 to its parameter, and returns the parameter
	count = asterisque.Stream[int, struct{}, int, int](4, "count")
	// sends every Block back, and returns its parameter
	chat = asterisque.Stream[string, string, string, string](5, "chat")
	// reverses text: it calls nest of its caller without the first letter, and so on
	nest = asterisque.Func[string, string](6, "nest")
	// runs, under the name that is its parameter, until it is cancelled
	ponder = asterisque.Func[string, string](7, "ponder")
	// returns the name when the ponder of that name has begun
	begun = asterisque.Func[string, string](8, "begun")
	// returns when the ponder of that name has ended: "canceled" or "expired"
	ended = asterisque.Func[string, string](9, "ended")
	// fails with the code that is its parameter, message "as asked", detail "why"
	fail = asterisque.Func[string, string](10, "fail")
	// fails without a code, and with its parameter as the message
	broken = asterisque.Func[string, string](11, "broken")
	crash  = asterisque.Func[string, string](12, "crash") // panics
	// returns text of the given number of bytes
	inflate = asterisque.Func[string, string](13, "inflate")
	// returns a value that no codec can encode
	odd = asterisque.Func[string, any](14, "odd")
	// shuts the session down gracefully, from the callee's side
	leave = asterisque.Func[string, string](15, "leave")
	// takes three Blocks, and then stops; returns after release
	sip = asterisque.Stream[string, string, struct{}, string](16, "sip")
	// makes the sip of that name return
	release = asterisque.Func[string, string](17, "release")
	// returns its metadata under the key that is its parameter, without the spaces at the end;
	// behind a "<", it returns the result of a call back with the rest
	beside = asterisque.Func[string, string](18, "beside")
	// makes the part of that name report that it is not serving
	falter = asterisque.Func[string, string](19, "falter")
	// counts its runs of that name, and returns the count
	tally = asterisque.Func[string, string](20, "tally")
	// takes text until its end, and returns the number of bytes of UTF-8
	weigh = asterisque.Stream[string, string, struct{}, int64](21, "weigh")
	// is weigh, which begins to receive only after release
	hoard = asterisque.Stream[string, string, struct{}, int64](22, "hoard")
	// calls a function of its caller, not nested, with the number and the text in "NUMBER TEXT". It
	// returns the result, or "failed CODE" or "refused CODE"
	errand = asterisque.Func[string, string](23, "errand")
	// calls weigh of its caller, not nested, and returns as errand: it sends "BLOCKS SIZE"
	deliver = asterisque.Func[string, string](24, "deliver")
	// sends that number of Blocks of text of that size: "BLOCKS SIZE"
	pour = asterisque.Stream[string, struct{}, string, string](25, "pour")
	// is offered by neither side
	nowhere = asterisque.Func[string, string](99, "nowhere")
)

// order is a value with many types.
type order struct {
	Number   int              `json:"number"`
	Negative int              `json:"negative"`
	Text     string           `json:"text"`
	Flag     bool             `json:"flag"`
	Ratio    float64          `json:"ratio"`
	List     []string         `json:"list"`
	Counts   map[string]int64 `json:"counts"`
	Nothing  *string          `json:"nothing"`
	// of the exact integers of floating-point numbers, and of int64
	Edges []int64 `json:"edges"`
}
