package cluster

import (
	"errors"
	"fmt"
)

// ErrLost is the error of a lost claim ([Claim.Err]): another node has taken the key over, or this
// node could not renew its lease in time. The error itself is a [*LostError]. Stop the work that
// requires the claim, and claim the key again to continue on this node.
var ErrLost = errors.New("cluster: the claim is lost")

// ErrReleased is the error of [Claim.Err] after [Claim.Release], and after the node has left the
// cluster.
var ErrReleased = errors.New("cluster: the claim was released by this node")

// HeldError reports that a key cannot be claimed because a node, possibly this one, holds it. Wait
// for the key, or take it over.
type HeldError struct {
	Key    string
	Holder string // the id of the node; empty if this package did not write the entry in NATS
	Epoch  uint64 // of the claim of that node
}

// Error names the key, the node and the epoch.
func (e *HeldError) Error() string {
	return fmt.Sprintf("cluster: %q is held by the node %q with epoch %d: wait until it is free, or take it over", e.Key, e.Holder, e.Epoch)
}

// LostError reports why a claim was lost. It is an [ErrLost].
type LostError struct {
	Key         string
	Epoch       uint64 // of the lost claim
	Holder      string // the id of the present holder; empty if unknown
	HolderEpoch uint64 // of the present holder's claim; 0 if unknown
	Cause       error  // why the renewal failed, if known
}

// Error contains the key, the epoch, and the present holder or the reason why the claim was not
// renewed.
func (e *LostError) Error() string {
	text := fmt.Sprintf("%v: %q with epoch %d", ErrLost, e.Key, e.Epoch)
	switch {
	case e.Holder != "":
		text += fmt.Sprintf(": the node %q holds it with epoch %d", e.Holder, e.HolderEpoch)
	case e.Cause != nil:
		text += ": " + e.Cause.Error()
	}
	return text + "; stop the work that needs it, and claim it again to continue"
}

// Unwrap returns ErrLost, and Cause if there is one.
func (e *LostError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrLost}
	}
	return []error{ErrLost, e.Cause}
}

// Causes of a LostError.
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
