package main

import "github.com/asterisque-go/asterisque"

// The contract: what the two sides may ask of each other. Each function has a number, which is all
// that crosses the wire, a name for people, and types, which the compiler checks on both sides.
// There is nothing to generate.
var (
	// Offered by the server.
	greet  = asterisque.Func[string, string](10, "greet")
	square = asterisque.Func[int, int](12, "square")
	ponder = asterisque.Func[string, string](13, "ponder") // thinks for as long as it is let

	// sum takes ints and sends the sum so far for each, while the call runs; its result is how many
	// there were.
	sum = asterisque.Stream[struct{}, int, int, int](20, "sum")

	// Offered by the client, for the server to call back.
	surround = asterisque.Func[string, string](11, "surround")

	// A function that neither side offers.
	sing = asterisque.Func[string, string](99, "sing")
)
