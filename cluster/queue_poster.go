package cluster

import (
	"context"
	"encoding/json"

	"github.com/asterisque-go/asterisque"
)

// Poster is the node that has posted a call, by its own account. The permissions of NATS decide
// which clients may post.
type Poster struct {
	Identity string `json:"identity,omitempty"` // its Config.Identity
	Name     string `json:"name,omitempty"`     // as in Member, and so is ID
	ID       string `json:"id"`
}

// postedBy is the metadata key of a posted call for its Poster.
const postedBy = "asterisque.posted-by"

// PosterOf returns the Poster of the posted call that a handler runs. ctx is the context of the
// handler, or derived from it. ok is false if the call was not posted, but made by the peer of its
// session.
func PosterOf(ctx context.Context) (p Poster, ok bool) {
	s := asterisque.SessionOf(ctx)
	if s == nil {
		return p, false
	}
	return posterAt(s.Peer(), asterisque.MetadataOf(ctx))
}

// posterAt is PosterOf for a call of a peer with metadata. Other peers can send the same metadata,
// but only the peer of posted calls is within the program.
func posterAt(peer asterisque.Peer, m asterisque.Metadata) (p Poster, ok bool) {
	if peer.ID != queuePeerID || peer.RemoteAddr == nil || peer.RemoteAddr.Network() != "mem" {
		return p, false
	}
	said := m.Text(postedBy)
	return p, said != "" && json.Unmarshal([]byte(said), &p) == nil
}

// metadata returns the metadata of a posted call.
func (p *postedCall) metadata() asterisque.Metadata {
	by, _ := json.Marshal(Poster{p.Owner, p.Name, p.ID}) // strings can be encoded
	return asterisque.Metadata{postedBy: string(by)}
}
