package lease

import "errors"

// ErrLost is the error of a lost claim: another node has taken the key over, or this node could not
// renew its lease in time.
var ErrLost = errors.New("cluster: the claim is lost")

// ErrReleased is the error of a claim after its release, and after the end of all claims.
var ErrReleased = errors.New("cluster: the claim was released by this node")

// Held reports that a node, possibly this one, holds a key.
type Held struct {
	Key    string
	Holder string // the id of the node; empty if this package did not write the entry in NATS
	Epoch  uint64 // of the claim of that node
}

// Lost reports why a claim was lost.
type Lost struct {
	Key         string
	Epoch       uint64 // of the lost claim
	Holder      string // the id of the present holder; empty if unknown
	HolderEpoch uint64 // of the present holder's claim; 0 if unknown
	Cause       error  // why the renewal failed, if known
}

// heldError is the error of a held key within this package.
type heldError struct{ Held }

// Error implements error.
func (e *heldError) Error() string { return "the key " + e.Key + " is held by " + e.Holder }

// exported returns err, with a heldError as the error of the application.
func (c *Claims) exported(err error) error {
	if held, ok := err.(*heldError); ok {
		return c.cfg.Held(held.Held)
	}
	return err
}

// Causes of a lost claim.
var (
	errStoodStill = errors.New("its lease ran out while this process, or its machine, stood still")
	errGone       = errors.New("its entry in NATS is gone: the bucket was deleted or purged, or the entry ran out")
)

// unrenewedError is the cause of a lost claim after its lease expired while NATS did not renew it.
type unrenewedError struct{ last error }

func (e *unrenewedError) Error() string {
	return "its lease ran out, as NATS did not renew it in time: " + e.last.Error()
}

func (e *unrenewedError) Unwrap() error { return e.last }
