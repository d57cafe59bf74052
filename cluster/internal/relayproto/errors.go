package relayproto

import "github.com/asterisque-go/asterisque"

// Errors of an exchange. Their codes cross the wire.
var (
	// ErrNoMember reports that there is no such node, or that it may not be reached.
	ErrNoMember = refusal(1001, "no such node is at the exchange")

	// ErrNameTaken reports that nodes of another identity have the name.
	ErrNameTaken = refusal(1002, "the name is taken by another identity")

	// ErrReplaced reports that another node has registered with the name and the id.
	ErrReplaced = refusal(1003, "another node has registered with the name and the id of this one")

	// ErrUnproved reports that a node claims an identity that it has not proved.
	ErrUnproved = refusal(1004, "the identity is not proved")

	// ErrUnregistered reports that a node has to register before any other call.
	ErrUnregistered = refusal(1005, "this session has not registered")

	// ErrBadRegistration reports that the information of a node is invalid.
	ErrBadRegistration = refusal(1006, "such a node cannot register")

	// ErrGoes reports that the exchange shuts down. The node registers at another one, and drains
	// the sessions that this one relays.
	ErrGoes = refusal(1007, "the exchange shuts down: connect to another one")
)

func refusal(code asterisque.Code, text string) *asterisque.Abort {
	return &asterisque.Abort{Code: code, Message: text}
}
