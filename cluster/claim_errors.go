package cluster

import (
	"errors"
	"fmt"
)

// ErrLost is what [Claim.Err] is once a claim was lost: somebody has taken the key over, or this
// node could not renew its lease in time. The error itself is a [*LostError]. Stop what the claim
// was for, and claim the key again if it is to go on here.
var ErrLost = errors.New("cluster: the claim is lost")

// ErrReleased is what [Claim.Err] is after [Claim.Release], and after the cluster was left.
var ErrReleased = errors.New("cluster: the claim was released by this node")

// HeldError says that a key cannot be claimed, as a node holds it; that may be this node. Wait for
// the key, or take it over.
type HeldError struct {
	Key    string
	Holder string // the id of the node; empty if the entry in NATS is none that this package writes
	Epoch  uint64 // of the claim of that node
}

// Error names the key, the node and the epoch.
func (e *HeldError) Error() string {
	return fmt.Sprintf("cluster: %q is held by the node %q with epoch %d: wait until it is free, or take it over", e.Key, e.Holder, e.Epoch)
}

// LostError says why a claim is held no more, other than by its release. It is an [ErrLost].
type LostError struct {
	Key         string
	Epoch       uint64 // of the claim that is lost
	Holder      string // the id of the node that holds the key now; empty if that is not known
	HolderEpoch uint64 // of the claim of that node, 0 if that is not known
	Cause       error  // why it was not renewed, if that is known
}

// Error names the key, the epoch, and who holds the key, or why the claim was not renewed.
func (e *LostError) Error() string {
	text := fmt.Sprintf("%v: %q with epoch %d", ErrLost, e.Key, e.Epoch)
	switch {
	case e.Holder != "":
		text += fmt.Sprintf(": the node %q holds it with epoch %d", e.Holder, e.HolderEpoch)
	case e.Cause != nil:
		text += ": " + e.Cause.Error()
	}
	return text + "; stop what it was for, and claim it again to go on"
}

// Unwrap returns ErrLost, and Cause if there is one.
func (e *LostError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrLost}
	}
	return []error{ErrLost, e.Cause}
}

// These are causes of a LostError.
var (
	errStoodStill = errors.New("its lease ran out while this process, or its machine, stood still")
	errGone       = errors.New("its entry in NATS is gone: the bucket was deleted or purged, or the entry ran out")
)

// unrenewedError is the cause of a claim whose lease ran out while NATS did not renew it.
type unrenewedError struct{ last error }

func (e *unrenewedError) Error() string {
	return "its lease ran out, as NATS did not renew it in time: " + e.last.Error()
}

func (e *unrenewedError) Unwrap() error { return e.last }
