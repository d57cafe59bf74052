package agent

import (
	"errors"
	"fmt"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
)

var (
	// ErrClosed reports that this node has left the exchange by Close or Shutdown.
	ErrClosed = errors.New("agent: this node has left the exchange")

	// ErrNameTaken reports that nodes of another identity have registered with the name. Join with
	// another name, or after they have left, or prove their identity.
	ErrNameTaken = errors.New("agent: the name is taken by another identity")

	// ErrReplaced reports that another node has registered with the name and the id of this one,
	// which is no longer reachable. A cause is a program that was restarted while its old process
	// still runs, or two programs with the same Config.ID.
	ErrReplaced = errors.New("agent: another node has registered with the name and the id of this one")

	// ErrUnproved reports that the node has not proved the identity that Config.Identity claims.
	// Use a certificate (Config.TLS) or a credential (Config.Options) that proves it.
	ErrUnproved = errors.New("agent: the identity is not proved")

	// ErrNoMember reports that no node with that name and id is at the exchange, or that this node
	// may not reach it. See the policy of the exchange.
	ErrNoMember = errors.New("agent: no such node is at the exchange")
)

// refusals maps the permanent errors of an exchange for a registration to the errors of this
// package.
var refusals = map[*asterisque.Abort]error{
	relayproto.ErrNameTaken:       ErrNameTaken,
	relayproto.ErrReplaced:        ErrReplaced,
	relayproto.ErrUnproved:        ErrUnproved,
	relayproto.ErrNoMember:        ErrNoMember,
	relayproto.ErrBadRegistration: errors.New("agent: the exchange does not accept what the node says of itself"),
}

// told wraps an error of the exchange, and reports whether it is one of the refusals.
func told(err error) (told error, refused bool) {
	for what, ours := range refusals {
		if errors.Is(err, what) {
			return fmt.Errorf("%w: %w", ours, err), true
		}
	}
	return err, false
}
