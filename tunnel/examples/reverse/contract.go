package main

import "github.com/asterisque-go/asterisque"

// The contract of the two nodes.
var (
	// Offered by the public node: a machine registers its name, and gets its address for visitors.
	register = asterisque.Func[string, string](10, "register")

	// Offered by the public node: the calling machine is about to leave.
	leave = asterisque.Func[struct{}, struct{}](11, "leave")
)

// web is a function of the machine. Its calls are HTTP connections, and asterisque does not
// interpret their content.
const web = 80
