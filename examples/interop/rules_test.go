package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/wire"
)

// The rules of the protocol for frames that must not be sent; both programs have to keep to them in
// the same way. Numbers in names are sections of spec/protocol.md.

// Frames in hexadecimal. Pipe 0 is a call of chat, and pipe 2 is a call of chat that has ended.
const (
	// max message 1 MiB, an early credit of 1 byte, cbor
	syncFrame = "84000101a3041a001000000501098164" + "63626f72"
	openChat  = "860100050042" + "6161" + "a10700"
	// to a thousand million, which runs as long as the window of 0 bytes stays closed
	openCount  = "860100040045" + "1a3b9aca00" + "a10700"
	openAndEnd = "850102050042" + "6161" + " 840302f540"
	firstPing  = "8300020c"
)

// Both programs end a session that breaks the protocol.
func TestRules_Violations(t *testing.T) {
	againstBoth(t, func(t *testing.T, url string) {
		for name, frames := range map[string]string{
			"an empty frame (2)":                          "-",
			"no array (3)":                                "05",
			"bytes after the message (3)":                 "8300020100",
			"a number not in the shortest form (3)":       "830002181700",
			"an id of the other side's parity (6)":        "850101010040",
			"an id a second time (6)":                     "850100010040 850100010040",
			"an id below the last one (6)":                "850104010040 850102010040",
			"a Block of a pipe that never was (6)":        "8302044178",
			"a Block of a pipe of the other side (6)":     "8302014178",
			"a Close of a pipe that never was (6)":        "840304f540",
			"a Credit of a pipe that never was (6)":       "8400040401",
			"a Stop of a pipe that never was (6)":         "83000804",
			"a Block after the end of its direction (13)": openCount + " 830200f6 8302004178",
			"an end of a direction that has one (13)":     openCount + " 830200f6 830200f6",
			"a second Sync (7)":                           syncFrame,
			"a frame above max message (9)":               "+",
			"a known meta key with a wrong value (4)":     "860100050040a10100",
			"metadata that is no byte string (4)":         "860100050040a108a0",
			"a Control of a later version, malformed (5)": "83001840818181818101",
		} {
			t.Run(name, func(t *testing.T) {
				c := begin(t, url)
				c.send(frames)
				require.Equal(t, codec.Protocol, c.sessionClose())
			})
		}
	})
}

// Both programs refuse a handshake with a mismatch.
func TestRules_Handshake(t *testing.T) {
	againstBoth(t, func(t *testing.T, url string) {
		for name, frame := range map[string]string{
			"another message":          firstPing,
			"version 0":                "84000100" + syncFrame[8:],
			"no max message":           "84000101a1098164" + "63626f72",
			"a max message below 1024": "84000101a2041903ff098164" + "63626f72",
			"no value codec":           "84000101a1041a00100000",
			"a value codec it has not": "84000101a2041a001000000981" + "63786d6c",
			"a frame above 8192 bytes": "+",
			"a frame that is not one":  "ff",
			"an empty frame":           "-",
		} {
			t.Run(name, func(t *testing.T) {
				c := dialRaw(t, url)
				c.send(frame)
				require.Equal(t, codec.Handshake, c.sessionClose())
			})
		}
	})
}

// Both programs continue after permitted frames.
func TestRules_Allowed(t *testing.T) {
	againstBoth(t, func(t *testing.T, url string) {
		for name, frames := range map[string]string{
			"a late Block (6)":                       openAndEnd + " 8302024178",
			"a late end (6)":                         openAndEnd + " 830202f6",
			"a late Close (6)":                       openAndEnd + " 840302f540",
			"a late Credit (6)":                      openAndEnd + " 8400040201",
			"a late Stop (6)":                        openAndEnd + " 83000802",
			"a Block of an id that was left out (6)": openAndEnd + " 8302004178",
			"an unknown Control (5)":                 "82001863",
			"an unknown meta key (4)":                "860100050042" + "6161a11901f5f6",
			"a Pong that nobody asked for (10)":      "8300031863",
			"a Credit that is lower (8)":             openChat + " 8400040000",
			"a Credit for no window for Opens (8)":   "840004f600",
			"an Ack, without resume (14)":            "83000500",
			"a Drain, and another (11)":              "830006f6 830006f6",
			"an enclosing call that never was (4)":   "860100050042" + "6161a106191111",
			"a Block for chat behind its Open (6)":   openChat + " 8302004178",
			"an empty Block (4)":                     openChat + " 83020040",
			"a Stop (6)":                             openChat + " 83000800",
		} {
			t.Run(name, func(t *testing.T) {
				c := begin(t, url)
				c.send(frames)
				c.send(firstPing)
				for m := c.read(); m != (message.Pong{N: 12}); m = c.read() {
					closed, ok := m.(message.SessionClose)
					require.False(t, ok, "%+v", closed)
				}
			})
		}
	})
}

// Both programs refuse only the call with invalid metadata.
func TestRules_Metadata(t *testing.T) {
	againstBoth(t, func(t *testing.T, url string) {
		for name, metadata := range map[string]string{
			"33 entries":                    "b821" + thirtyThree(),
			"a key twice":                   "a2616b6176616b6177",
			"keys descending":               "a261626176616161" + "76",
			"a key that is a number":        "a1016176",
			"a value that is an array":      "a1616b80",
			"a value of 4096 bytes":         "a1616b591000" + strings.Repeat("00", 4096),
			"an empty key":                  "a1606176",
			"no map":                        "80",
			"bytes after the map":           "a1616b617600",
			"a value cut":                   "a1616b6276",
			"a length that is not shortest": "a1616b580100",
		} {
			t.Run(name, func(t *testing.T) {
				c := begin(t, url)
				open := func(pipe uint64, metadata string) {
					m := message.Open{Pipe: pipe, Function: beside.Number(), Params: []byte("\x61k"), Meta: message.Meta{Metadata: unhex(t, metadata)}}
					c.send(hex.EncodeToString(m.AppendTo(nil)))
				}
				open(0, metadata)
				refused, ok := c.read().(message.Close)
				require.True(t, ok)
				require.ErrorIs(t, refused.Abort, codec.ErrBadParams)
				require.Contains(t, refused.Abort.Message, "metadata")
				require.Equal(t, codec.Refused, refused.Abort.Ran)
				open(2, "a1616b6176")
				require.Equal(t, message.Close{Pipe: 2, Result: []byte("\x66text v")}, c.read(), "the session continues")
			})
		}
	})
}

// thirtyThree returns 33 entries with keys of two letters.
func thirtyThree() (list string) {
	for i := range 33 {
		list += fmt.Sprintf("6261%02x60", 'A'+i)
	}
	return list
}

// Both programs end only the call that ignores its window.
func TestRules_Window(t *testing.T) {
	againstBoth(t, func(t *testing.T, url string) {
		c := begin(t, url)
		c.send(openCount) // which takes no Blocks
		block := "83020059ea60" + strings.Repeat("00", 60_000)
		for range 3 {
			// The Block exceeds the early credit and the first grant of a running function.
			c.send(block)
		}
		for {
			m, ok := c.read().(message.Close)
			if !ok {
				continue // a Block of the callee
			}
			require.Equal(t, uint64(0), m.Pipe)
			require.Equal(t, codec.WindowViolation, m.Abort.Code)
			break
		}
		c.send(block) // is late
		c.send(firstPing)
		require.Equal(t, message.Pong{N: 12}, c.read(), "the session continues")
	})
}

// againstBoth runs f against a listening program of each implementation.
func againstBoth(t *testing.T, f func(t *testing.T, url string)) {
	t.Run("here", func(t *testing.T) {
		s, err := listen(t.Context(), "tcp://127.0.0.1:0", "", nil, new(bytes.Buffer))
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() { served <- s.node.Serve(t.Context(), s.ln) }() // until the node is closed
		defer func() {
			require.NoError(t, s.node.Close())
			require.NoError(t, <-served)
		}()
		f(t, s.ln.URL())
	})
	t.Run("the peer", func(t *testing.T) {
		needNode(t)
		cmd, stderr := peer(t.Context(), "-listen", "tcp://127.0.0.1:0")
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		// The program may have been killed.
		url, wait := listening(t, stdout, func() error { cmd.Wait(); return nil })
		f(t, url)
		require.NoError(t, cmd.Process.Kill())
		wait()
		require.Empty(t, stderr.String())
	})
}

// raw is a connection over which a test sends arbitrary bytes.
type raw struct {
	t    *testing.T
	conn net.Conn
	wire wire.Wire
}

func dialRaw(t *testing.T, url string) *raw {
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "tcp://"))
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(hangs)))
	w := wire.FromConn(conn)
	t.Cleanup(func() { w.Close() })
	return &raw{t, conn, w}
}

// begin dials and completes a handshake.
func begin(t *testing.T, url string) *raw {
	c := dialRaw(t, url)
	c.send(syncFrame)
	require.IsType(t, message.Sync{}, c.read())
	return c
}

// send sends frames given in hexadecimal; "-" is an empty frame, and "+" the length prefix of a
// frame of 2 GiB.
func (c *raw) send(frames string) {
	for _, f := range strings.Fields(frames) {
		b, err := hex.DecodeString(strings.Trim(f, "-+"))
		require.NoError(c.t, err)
		length := uint32(len(b))
		if f == "+" {
			length = 1 << 31
		}
		_, err = c.conn.Write(append(binary.BigEndian.AppendUint32(nil, length), b...))
		require.NoError(c.t, err)
	}
}

// read returns the next message.
func (c *raw) read() any {
	frame, err := c.wire.ReadFrame(1 << 20)
	require.NoError(c.t, err)
	frame = bytes.Clone(frame)
	kind, err := message.TypeOf(frame)
	require.NoError(c.t, err)
	var m any
	switch kind {
	case message.BlockType:
		m, err = message.ParseBlock(frame)
	case message.CloseType:
		m, err = message.ParseClose(frame)
	case message.OpenType:
		m, err = message.ParseOpen(frame)
	default:
		m, err = message.ParseControl(frame)
	}
	require.NoError(c.t, err)
	return m
}

// sessionClose returns the code with which the other side closes the session, and skips all earlier
// messages.
func (c *raw) sessionClose() codec.Code {
	for {
		if m, ok := c.read().(message.SessionClose); ok {
			return m.Code
		}
	}
}
