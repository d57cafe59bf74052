package outer

import "github.com/asterisque-go/asterisque"

// What an exchange refuses with. Their codes cross the wire.
var (
	// ErrNoMember says that there is no such node, or none that may be reached.
	ErrNoMember = refusal(1001, "no such node is at the exchange")

	// ErrNameTaken says that nodes of another identity have the name.
	ErrNameTaken = refusal(1002, "the name is taken by another identity")

	// ErrReplaced says that another node has registered with the name and the id.
	ErrReplaced = refusal(1003, "another node has registered with the name and the id of this one")

	// ErrUnproved says that a node claims an identity that it has not proved.
	ErrUnproved = refusal(1004, "the identity is not proved")

	// ErrUnregistered says that a node has to register before it asks for anything.
	ErrUnregistered = refusal(1005, "this session has not registered")

	// ErrBadRegistration says that what a node says of itself cannot be.
	ErrBadRegistration = refusal(1006, "such a node cannot register")

	// ErrGoes says that the exchange shuts down. The node registers at another one, and sees off
	// the sessions that this one relays.
	ErrGoes = refusal(1007, "the exchange shuts down: connect to another one")
)

func refusal(code asterisque.Code, text string) *asterisque.Abort {
	return &asterisque.Abort{Code: code, Message: text}
}
