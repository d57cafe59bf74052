package cluster

import (
	"context"
	"encoding/json"

	"github.com/asterisque-go/asterisque"
)

// Poster is the node that has posted a call, as it has said itself: who may post is up to the
// permissions of NATS.
type Poster struct {
	Identity string `json:"identity,omitempty"` // its Config.Identity
	Name     string `json:"name,omitempty"`     // these are as in Member
	ID       string `json:"id"`
}

// postedBy is where the metadata of a posted call has its Poster.
const postedBy = "asterisque.posted-by"

// PosterOf returns who has posted the call that a handler runs, whose context ctx is, or is derived
// from. ok is false if the call was not posted, but made by the peer of its session.
func PosterOf(ctx context.Context) (p Poster, ok bool) {
	s := asterisque.SessionOf(ctx)
	if s == nil {
		return p, false
	}
	return posterAt(s.Peer(), asterisque.MetadataOf(ctx))
}

// posterAt is PosterOf for a call of a peer with metadata, which other peers can say as well: the
// one that makes posted calls is within the program.
func posterAt(peer asterisque.Peer, m asterisque.Metadata) (p Poster, ok bool) {
	if peer.ID != queuePeerID || peer.RemoteAddr == nil || peer.RemoteAddr.Network() != "mem" {
		return p, false
	}
	said := m.Text(postedBy)
	return p, said != "" && json.Unmarshal([]byte(said), &p) == nil
}

// metadata returns what a posted call carries.
func (p *posted) metadata() asterisque.Metadata {
	by, _ := json.Marshal(Poster{p.Owner, p.Name, p.ID}) // strings can be encoded
	return asterisque.Metadata{postedBy: string(by)}
}
