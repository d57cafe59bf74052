package agent

import (
	"errors"
	"fmt"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange/internal/outer"
)

var (
	// ErrClosed says that this node has left the exchange: Close or Shutdown was called here.
	ErrClosed = errors.New("agent: this node has left the exchange")

	// ErrNameTaken says that nodes of another identity have registered with the name. Join with
	// another name, or when they have left; or prove the identity that they have.
	ErrNameTaken = errors.New("agent: the name is taken by another identity")

	// ErrReplaced says that another node has registered with the name and the id of this one, which
	// therefore is reachable no more. A program that was started again while the old one still runs
	// does that, and so do two programs with one Config.ID.
	ErrReplaced = errors.New("agent: another node has registered with the name and the id of this one")

	// ErrUnproved says that the exchange does not believe that the node is what Config.Identity
	// claims. Show a certificate (Config.TLS) or a credential (Config.Options) that proves it.
	ErrUnproved = errors.New("agent: the identity is not proved")

	// ErrNoMember says that no node with such a name and id is at the exchange that this node may
	// reach. See the policy of the exchange.
	ErrNoMember = errors.New("agent: no such node is at the exchange")
)

// refusals are what an exchange says for good when a node registers, and how it is told here.
var refusals = map[*asterisque.Abort]error{
	outer.ErrNameTaken:       ErrNameTaken,
	outer.ErrReplaced:        ErrReplaced,
	outer.ErrUnproved:        ErrUnproved,
	outer.ErrNoMember:        ErrNoMember,
	outer.ErrBadRegistration: errors.New("agent: the exchange does not accept what the node says of itself"),
}

// told returns the error that an exchange has told, and whether it is one of the refusals.
func told(err error) (told error, refused bool) {
	for what, ours := range refusals {
		if errors.Is(err, what) {
			return fmt.Errorf("%w: %w", ours, err), true
		}
	}
	return err, false
}
