package vectors

import (
	"regexp"
	"strings"
)

// place is the code that reads one item of a frame. The text between the guillemets reads the item.
type place struct{ section, what, file, text string }

const (
	openFile    = "codec/message/open.go"
	blockFile   = "codec/message/block.go"
	closeFile   = "codec/message/close.go"
	controlFile = "codec/message/control.go"
	syncFile    = "codec/message/sync.go"
	metaFile    = "codec/message/meta.go"
	partFile    = "codec/message/part.go"
	frameFile   = "codec/message/frame.go"
	reasonFile  = "codec/message/reason.go"
)

var allPlaces = []place{
	{"3-encoding", "the frame", frameFile, `n := «r.Array("the message")»`},
	{"3-encoding", "the type of the message", frameFile, `Type(«r.Uint("message type", uint64(PartType))»)`},
	{"3-encoding", "a key", reader, `«r.Uint("key", MaxNumber)»`},

	{"4-open-block-close", "the pipe of an Open", openFile, `«r.Uint("pipe id", MaxPipe)»`},
	{"4-open-block-close", "the function", openFile, `«r.Uint("function", maxFunction)»`},
	{"4-open-block-close", "the priority", openFile, `«r.Int("priority", maxPriority)»`},
	{"4-open-block-close", "the params", openFile, `«r.Bytes("params")»`},
	{"4-open-block-close", "the pipe of a Block", blockFile, `«r.Uint("pipe id", MaxPipe)»`},
	{"4-open-block-close", "the payload", blockFile, `«r.Bytes("payload")»`},
	{"4-open-block-close", "the pipe of a Close", closeFile, `«r.Uint("pipe id", MaxPipe)»`},
	{"4-open-block-close", "the result", closeFile, `«r.Bytes("result")»`},
	{"4-open-block-close", "the code", closeFile, `Code: «readCode(r)»`},
	{"4-open-block-close", "any code", reasonFile, `«r.Int("code", math.MaxInt32)»`},
	{"4-open-block-close", "the message", closeFile, `Message: «readReason(r)»`},
	{"4-open-block-close", "the detail", closeFile, `«r.Bytes("detail")»`},

	{"meta", "the meta", metaFile, `«r.Map("meta", maxMetaEntries)»`},
	{"meta", "the TTL", metaFile, `«r.UintFrom("TTL", 1, MaxTTL)»`},
	{"meta", "the loss rate", metaFile, `«r.Uint("loss rate", MaxLoss)»`},
	{"meta", "the skipped count", metaFile, `«r.Uint("skipped count", MaxPipe)»`},
	{"meta", "the trace context", metaFile, `«r.BytesOf("trace context", 1, MaxTrace)»`},
	{"meta", "the idempotency key", metaFile, `«r.BytesOf("idempotency key", 1, MaxKey)»`},
	{"meta", "the enclosing call", metaFile, `«r.Uint("enclosing pipe id", MaxPipe)»`},
	{"meta", "the window", metaFile, `«r.Uint("window", MaxPipe)»`},
	{"meta", "the metadata", metaFile, `«r.BytesOf("metadata", 1, longestMetadata)»`},

	{"parts", "the pipe of a Part", partFile, `m := Part{Pipe: «r.Uint("pipe id", MaxPipe)»`},
	{"parts", "the bytes", partFile, `«r.BytesOf("part", 1, MaxPart)»`},
	{"parts", "whole", partFile, `«r.UintFrom("whole", uint64(len(m.Bytes)), MaxPipe)»`},

	{"5-controls", "the code of a Control", controlFile, `«r.Uint("control code", MaxPipe)»`},
	{"5-controls", "the n of a Ping", controlFile, `Ping{N: «r.Uint("number", MaxPipe)»`},
	{"5-controls", "the holds of a Ping", controlFile, `«r.UintFrom("bytes of the path", 1, MaxPipe)»`},
	{"5-controls", "the n of a Pong", controlFile, `Pong{N: «r.Uint("number", MaxPipe)»`},
	{"5-controls", "a pipe or null", frameFile, `«r.Uint("pipe id", MaxPipe)»`},
	{"5-controls", "the limit of a Credit", controlFile, `«r.Uint("limit", MaxPipe)»`},
	{"5-controls", "the extra credit of a Credit", controlFile, `«r.Uint("extra credit", MaxPipe)»`},
	{"7-handshake", "the extra credit", syncFile, `«r.Uint("extra credit", MaxPipe)»`},
	{"meta", "the initial credit", metaFile, `«r.Uint("initial credit", MaxPipe)»`},
	{"5-controls", "the count of an Ack", controlFile, `«r.Uint("count", MaxPipe)»`},
	{"5-controls", "the code of a Close of the session", controlFile, `Code: «readCode(r)»`},
	{"5-controls", "the message of a Close of the session", controlFile, `Message: «readReason(r)»`},
	{"5-controls", "the pipe of a Stop", controlFile, `Stop{Pipe: «r.Uint("pipe id", MaxPipe)»`},
	{"5-controls", "the pipe of a Skip", controlFile, `Skip{Pipe: «r.Uint("pipe id", MaxPipe)»`},
	{"5-controls", "the sent cost of a Skip", controlFile, `«r.Uint("skipped cost", MaxPipe)»`},

	{"7-handshake", "the version", syncFile, `«r.Uint("version", MaxPipe)»`},
	{"7-handshake", "the fields", syncFile, `«r.Map("Sync", maxSyncEntries)»`},
	{"7-handshake", "the node id", syncFile, `«r.BytesOf("node id", 0, MaxNode)»`},
	{"7-handshake", "the session id", syncFile, `«readFixed(r, "session id", SessionSize)»`},
	{"7-handshake", "the features", syncFile, `«r.Uint("features", MaxPipe)»`},
	{"7-handshake", "the max message", syncFile, `«r.Uint("max message", MaxPipe)»`},
	{"7-handshake", "the early credit", syncFile, `«r.Uint("early credit", MaxPipe)»`},
	{"7-handshake", "the room for Opens", syncFile, `«r.Uint("room for Opens", MaxPipe)»`},
	{"7-handshake", "the ping interval", syncFile, `«readMillis(r, "ping interval")»`},
	{"7-handshake", "the timeout", syncFile, `«readMillis(r, "timeout")»`},
	{"7-handshake", "milliseconds", syncFile, `«r.Uint(what, maxMillis)»`},
	{"7-handshake", "the codecs", syncFile, `«r.Array("codecs")»`},
	{"7-handshake", "a codec's name", syncFile, `«r.Text("codec name")»`},
	{"7-handshake", "the credential", syncFile, `«r.BytesOf("credential", 0, MaxCredential)»`},
	{"7-handshake", "the secret", syncFile, `«readFixed(r, "secret", SecretSize)»`},
	{"7-handshake", "the received count", syncFile, `«r.Uint("received count", MaxPipe)»`},
	{"7-handshake", "the overhead", syncFile, `«r.UintFrom("overhead", MinOverhead, MaxPipe)»`},
	{"7-handshake", "the nested room", syncFile, `«r.Uint("nested room", MaxPipe)»`},
	{"7-handshake", "the nested calls", syncFile, `«r.Uint("nested calls", MaxPipe)»`},
}

var (
	receiver = regexp.MustCompile(`\br\b`)
	bounds   = regexp.MustCompile(`^(r\.\w+)\(("[^"]*"|what), (?:(.+), )?(.+)\)$`)
)

// places accepts each item in an invalid form, and moves the ends of its range.
func places() (list []mutant) {
	for _, p := range allPlaces {
		before, call, _ := strings.Cut(p.text, "«")
		call, after, _ := strings.Cut(call, "»")
		add := func(name, to string) {
			list = append(list, mutant{p.section + ": " + p.what + " " + name, p.file, before + call + after, before + to + after})
		}
		via := func(f string) string {
			at := receiver.FindStringIndex(call)
			return call[:at[0]] + "r." + f + "()" + call[at[1]:]
		}
		if call != `r.Uint(what, maxMillis)` && call != `r.Int("code", math.MaxInt32)` {
			add("need not be in the shortest form", via("Shorten"))
			add("may have a tag", via("Untag"))
			if !strings.Contains(call, "Uint") && !strings.Contains(call, "Int(") && !strings.Contains(call, "Code") && !strings.Contains(call, "Millis") {
				add("may be of indefinite length", via("Definite"))
			}
		}
		moved(call, add)
	}
	return list
}

// unreachable contains bounds that a frame cannot reach, or that are checked again later.
var unreachable = []string{"longestMetadata", "uint64(PartType)", "uint64(len(m.Bytes))"}

// moved moves the ends of a range by one.
func moved(call string, add func(name, to string)) {
	m := bounds.FindStringSubmatch(call)
	if m == nil {
		return
	}
	f, of, lo, hi := m[1], m[2], m[3], m[4]
	from := f
	if f == "r.Uint" {
		lo, from = "0", "r.UintFrom"
	}
	skip := func(end string) bool {
		for _, u := range unreachable {
			if end == u {
				return true
			}
		}
		return end == ""
	}
	join := func(f string, lo, hi string) string {
		if lo == "" {
			return f + "(" + of + ", " + hi + ")"
		}
		return f + "(" + of + ", " + lo + ", " + hi + ")"
	}
	if !skip(hi) {
		add("may be one above its range", join(from, lo, hi+"+1"))
		add("is refused at the end of its range", join(from, lo, hi+"-1"))
	}
	if skip(lo) {
		return
	}
	add("is refused at the beginning of its range", join(from, lo+"+1", hi))
	if lo != "0" {
		add("may be one below its range", join(from, lo+"-1", hi))
	}
}
