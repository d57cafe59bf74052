package main

import "github.com/asterisque-go/asterisque"

// The contract: the functions that the two sides offer to each other. Each function has a number,
// which is all that crosses the wire, a descriptive name, and types, which the compiler checks on
// both sides. No code is generated.
var (
	// Offered by the server.
	greet  = asterisque.Func[string, string](10, "greet")
	square = asterisque.Func[int, int](12, "square")
	ponder = asterisque.Func[string, string](13, "ponder") // runs until its context ends

	// sum takes ints and sends the sum so far for each, while the call runs; its result is the
	// number of ints.
	sum = asterisque.Stream[struct{}, int, int, int](20, "sum")

	// Offered by the client, for the server to call back.
	surround = asterisque.Func[string, string](11, "surround")

	// A function that neither side offers.
	sing = asterisque.Func[string, string](99, "sing")
)
