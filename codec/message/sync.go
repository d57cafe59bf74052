package message

import (
	"math"
	"time"

	"github.com/asterisque-go/asterisque/internal/cborhead"
)

// Version is the protocol version of this package.
const Version = 1

// Limits of the fields of a Sync.
const (
	MaxNode       = 64   // bytes of a node id
	SessionSize   = 16   // bytes of a session id
	MaxCodecs     = 16   // names
	MaxCodecName  = 32   // bytes
	MaxCredential = 4096 // bytes
	SecretSize    = 16   // bytes of the secret for resuming a session
	MinOverhead   = 512  // minimum cost of a message besides its content
)

// FeatureResume is the bit of [Sync].Features for the ability to resume a session over another
// wire.
const FeatureResume = 1

// FeatureMetadata is the bit of [Sync].Features for the metadata of calls. Metadata is sent only to
// a side that has set it, see [Meta].Metadata.
const FeatureMetadata = 2

// Sync is the handshake: each side sends one, before anything else. A zero field is not sent.
//
// A new field takes the next key. AppendTo, in which keys ascend, and readSyncEntry know it; in the
// root, syncOf sets it and syncSettingsOf reads it. The specification lists it in section 7.
//
// AppendTo does not check the lengths of byte strings and names, nor Overhead; the peer rejects
// values beyond the limits.
type Sync struct {
	Version    uint64 // of the protocol
	Node       []byte // node id, at most MaxNode bytes
	Session    []byte // session id, SessionSize bytes or none
	Features   uint64 // a bit for each optional part of the protocol
	MaxMessage uint64 // the largest frame that this side accepts, in bytes
	// early credit: cost of the Blocks that the opener of a stream may send before a Credit; 0: no
	// windows
	Window uint64
	// room for Opens: total cost of those that may be sent initially, without nested ones; 0: no
	// limit
	Opens uint64

	// a Ping is sent after this time without a message; whole milliseconds, rounded up
	Ping time.Duration
	// the peer is considered lost after this time without a message; whole milliseconds, rounded up
	Timeout time.Duration

	// names of value codecs, in order of preference; the accepting side names the chosen one
	Codecs     []string
	Credential []byte // authenticates this side, at most MaxCredential bytes

	// the secret for resuming the session, SecretSize bytes or none; the accepting side issues it,
	// the connecting one presents it
	Secret []byte
	// number of countable frames of the session that the sender of this message has received, for a
	// resume
	Received uint64

	// overhead of a message to this side besides its content, at least MinOverhead; 0: MinOverhead
	Overhead uint64
	// maximum cost of the unanswered nested Opens of the peer; 0: no limit
	NestedRoom uint64
	// maximum number of the unanswered nested Opens of the peer; 0: no limit
	NestedCalls uint64

	// extra credit: what the Opens of streams may take in all for their first Blocks, initially:
	// see [Meta].Initial; 0: none
	Extra uint64
}

// Keys of the fields of a Sync as a map in a frame.
const (
	nodeKey = iota + 1
	sessionKey
	featuresKey
	maxMessageKey
	windowKey
	opensKey
	pingKey
	timeoutKey
	codecsKey
	credentialKey
	secretKey
	receivedKey
	overheadKey
	nestedRoomKey
	nestedCallsKey
	extraKey
)

// maxSyncEntries bounds a received Sync, unknown keys included.
const maxSyncEntries = 64

// maxMillis bounds a duration in a Sync, as MaxTTL bounds a TTL.
const maxMillis = math.MaxInt32

// AppendTo implements Control.
func (c Sync) AppendTo(dst []byte) []byte {
	dst = cborhead.AppendNumber(appendControl(dst, syncCode, 2), c.Version)
	at := len(dst)
	dst = append(dst, cborhead.Map)
	dst = appendBytesEntry(dst, at, nodeKey, c.Node)
	dst = appendBytesEntry(dst, at, sessionKey, c.Session)
	dst = appendEntry(dst, at, featuresKey, c.Features)
	dst = appendEntry(dst, at, maxMessageKey, c.MaxMessage)
	dst = appendEntry(dst, at, windowKey, c.Window)
	dst = appendEntry(dst, at, opensKey, c.Opens)
	dst = appendEntry(dst, at, pingKey, millis(c.Ping))
	dst = appendEntry(dst, at, timeoutKey, millis(c.Timeout))
	dst = appendTextsEntry(dst, at, codecsKey, c.Codecs)
	dst = appendBytesEntry(dst, at, credentialKey, c.Credential)
	dst = appendBytesEntry(dst, at, secretKey, c.Secret)
	dst = appendEntry(dst, at, receivedKey, c.Received)
	dst = appendEntry(dst, at, overheadKey, c.Overhead)
	dst = appendEntry(dst, at, nestedRoomKey, c.NestedRoom)
	dst = appendEntry(dst, at, nestedCallsKey, c.NestedCalls)
	return appendEntry(dst, at, extraKey, c.Extra)
}

// millis rounds up, so that a short time does not become none.
func millis(d time.Duration) uint64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return uint64(min(max(ms, 0), maxMillis))
}

// readSync reads the fields behind the code of a Sync.
func readSync(r *cborhead.Reader) Sync {
	c := Sync{Version: r.Uint("version", MaxPipe)}
	var key uint64
	for i := range r.Map("Sync", maxSyncEntries) {
		key = r.Key(i, key)
		readSyncEntry(r, key, &c)
		if r.Err != nil {
			break
		}
	}
	return c
}

func readSyncEntry(r *cborhead.Reader, key uint64, c *Sync) {
	switch key {
	case nodeKey:
		c.Node = r.BytesOf("node id", 0, MaxNode)
	case sessionKey:
		c.Session = readFixed(r, "session id", SessionSize)
	case featuresKey:
		c.Features = r.Uint("features", MaxPipe)
	case maxMessageKey:
		c.MaxMessage = r.Uint("max message", MaxPipe)
	case windowKey:
		c.Window = r.Uint("early credit", MaxPipe)
	case opensKey:
		c.Opens = r.Uint("room for Opens", MaxPipe)
	case pingKey:
		c.Ping = readMillis(r, "ping interval")
	case timeoutKey:
		c.Timeout = readMillis(r, "timeout")
	case codecsKey:
		c.Codecs = readCodecs(r)
	case credentialKey:
		c.Credential = r.BytesOf("credential", 0, MaxCredential)
	case secretKey:
		c.Secret = readFixed(r, "secret", SecretSize)
	case receivedKey:
		c.Received = r.Uint("received count", MaxPipe)
	case overheadKey:
		c.Overhead = r.UintFrom("overhead", MinOverhead, MaxPipe)
	case nestedRoomKey:
		c.NestedRoom = r.Uint("nested room", MaxPipe)
	case nestedCallsKey:
		c.NestedCalls = r.Uint("nested calls", MaxPipe)
	case extraKey:
		c.Extra = r.Uint("extra credit", MaxPipe)
	default:
		r.Skip()
	}
}

// readFixed reads a byte string of size bytes, or an empty one.
func readFixed(r *cborhead.Reader, what string, size int) []byte {
	at := r.At
	b := r.Bytes(what)
	if len(b) != 0 && len(b) != size {
		r.Fail(at, "%s of %d bytes, not 0 or %d", what, len(b), size)
	}
	return b
}

func readMillis(r *cborhead.Reader, what string) time.Duration {
	return time.Duration(r.Uint(what, maxMillis)) * time.Millisecond
}

func readCodecs(r *cborhead.Reader) []string {
	at := r.At
	n := r.Array("codecs")
	if n < 1 || n > MaxCodecs {
		r.Fail(at, "%d codecs, not 1 to %d", n, MaxCodecs)
		return nil
	}
	names := make([]string, n)
	for i := 0; i < n && r.Err == nil; i++ {
		at = r.At
		names[i] = r.Text("codec name")
		if len(names[i]) < 1 || len(names[i]) > MaxCodecName {
			r.Fail(at, "codec name of %d bytes, not 1 to %d", len(names[i]), MaxCodecName)
		}
	}
	return names
}
