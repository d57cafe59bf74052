package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
)

// needNode skips a test where the peer in the other language cannot run.
func needNode(t *testing.T) {
	t.Helper()
	out, err := exec.Command("node", "-p", "process.versions.node.split('.')[0] >= 20").Output()
	if err != nil || strings.TrimSpace(string(out)) != "true" {
		t.Skip("peer.mjs needs Node.js 20 or newer, as \"node\" in the path")
	}
}

// The peer agrees with the vectors.
func TestPeer_Vectors(t *testing.T) {
	needNode(t)
	out, err := exec.CommandContext(t.Context(), "node", "peer.mjs", "-vectors", "../../spec/vectors.json").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Regexp(t, `^\d{2,} valid and \d{3,} invalid vectors, \d{2,} integers, \d{2,} of metadata, \d{2,} scenarios, 0 failures\n$`, string(out))
}

// The peer reports a vector that fails.
func TestPeer_FailingVector(t *testing.T) {
	needNode(t)
	file := t.TempDir() + "/vectors.json"
	require.NoError(t, os.WriteFile(file, []byte(`{"version": 1,
		"valid": [{"name": "wrong number", "hex": "83000201", "message": {"type": "ping", "n": 2}},
			{"name": "never written", "hex": "8402024178a0", "message": {"type": "block", "pipe": 2, "payload": "78"}, "oneway": true},
			{"name": "always written", "hex": "83020240", "message": {"type": "block", "pipe": 2, "payload": ""}, "oneway": true, "written": "83020240"},
			{"name": "dear", "hex": "83020240", "message": {"type": "block", "pipe": 2, "payload": ""}, "cost": 513}],
		"invalid": [{"name": "fine", "hex": "83000201", "type": "control", "reason": "none"}],
		"integers": [{"name": "rounded", "codec": "json", "hex": "39303037313939323534373430393933", "value": "9007199254740992"},
			{"name": "not shortest", "codec": "cbor", "hex": "c24101", "value": "1"}],
		"metadata": [{"name": "another value", "hex": "a1616b6176", "entries": [{"key": "k", "text": "w"}]},
			{"name": "written otherwise", "hex": "a0", "entries": []},
			{"name": "fine", "hex": "a1616b6176", "refused": true, "reason": "none"}],
		"scenarios": [{"name": "nothing is refused", "frames": ["83020240"], "messages": ["83020240"], "refused": true},
			{"name": "another message", "frames": ["83020240"], "messages": ["83020040"]}]}`), 0o600))
	out, err := exec.CommandContext(t.Context(), "node", "peer.mjs", "-vectors", file).CombinedOutput()
	require.Error(t, err)
	// Lines of the output: both directions of the first frame; three other encodings of the next;
	// the third; both costs.
	require.Contains(t, string(out), "4 valid and 1 invalid vectors, 2 integers, 3 of metadata, 2 scenarios, 16 failures")
}

// TestPeer_LargeNumbers makes real calls of functions that return the decoded numbers, or their
// sum. Unchanged bytes in the answer show that nothing was rounded.
func TestPeer_LargeNumbers(t *testing.T) {
	needNode(t)
	for _, codecName := range []string{"cbor", "json", "msgpack"} {
		t.Run(codecName, func(t *testing.T) {
			url, wait := startPeer(t, "-listen", "tcp://127.0.0.1:0", "-once")
			node := asterisque.NewNode(asterisque.WithCodecs(codecs[codecName]))
			sess, err := node.Dial(t.Context(), url)
			require.NoError(t, err)
			for _, v := range numbers(t, codecName) {
				back, err := sess.Call(t.Context(), mirror.Number(), v.data)
				require.NoError(t, err, v.name)
				require.Equal(t, string(v.data), string(back), v.name)
			}
			call, err := sum.Open(t.Context(), sess, "")
			require.NoError(t, err)
			require.NoError(t, call.Send(t.Context(), 1<<53-1))
			require.NoError(t, call.Send(t.Context(), 1<<54))
			require.NoError(t, call.CloseSend())
			total, err := call.Result(t.Context())
			require.NoError(t, err)
			require.Equal(t, int64(1<<53-1+1<<54), total)
			require.NoError(t, node.Shutdown(t.Context()))
			wait()
		})
	}
}

// number is a number and its encoding by a value codec.
type number struct {
	name string
	data []byte
}

// numbers returns the integers of the test vectors, and floating-point numbers with an integral
// value.
func numbers(t *testing.T, codecName string) []number {
	file, err := os.ReadFile("../../spec/vectors.json")
	require.NoError(t, err)
	var vectors struct {
		Integers []struct{ Name, Codec, Hex string }
	}
	require.NoError(t, json.Unmarshal(file, &vectors))
	floating := map[string]string{
		"cbor": "fb43b0000000000000", "json": hex.EncodeToString([]byte("1.152921504606847e+18")), "msgpack": "cb43b0000000000000",
	}
	list := []number{{"floating point", unhex(t, floating[codecName])}}
	for _, v := range vectors.Integers {
		if v.Codec == codecName {
			list = append(list, number{v.Name, unhex(t, v.Hex)})
		}
	}
	require.Greater(t, len(list), 15)
	return list
}

func unhex(t *testing.T, s string) []byte {
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

// TestPeer_Matrix runs each of the two programs against each, except this one against itself, over
// both wires of the peer. The wire does not depend on the value codec. Calls in one direction use
// all of a value codec, and the peer against itself is entirely in the other language: -soak tries
// that as well.
func TestPeer_Matrix(t *testing.T) {
	needNode(t)
	for _, wire := range []struct {
		name, url string
		codecs    []string // the first one with either of the two as the one that calls
	}{
		{"TCP", "tcp://127.0.0.1:0", []string{"cbor", "json", "raw", "msgpack"}},
		{"WebSocket", "ws://127.0.0.1:0/rpc", []string{"cbor"}},
	} {
		for n, codecName := range wire.codecs {
			if !sampled(n) {
				continue
			}
			for name, pair := range map[string]struct{ listen, dial program }{
				"here calls the peer":   {listen: startPeer, dial: dialHere},
				"the peer calls here":   {listen: startHere, dial: dialPeer},
				"the peer calls a peer": {listen: startPeer, dial: dialPeer},
			} {
				if !*soak && (name == "the peer calls a peer" || name == "here calls the peer" && codecName != wire.codecs[0]) {
					continue
				}
				t.Run(name+" over "+wire.name+" in "+codecName, func(t *testing.T) {
					t.Parallel()
					url, wait := pair.listen(t, "-listen", wire.url, "-once")
					_, result := pair.dial(t, "-dial", url, "-calls", fmt.Sprint(few()), "-codec", codecName)
					out := result()
					requireMatrix(t, out, codecName == "raw")
					require.Contains(t, wait(), "served")
				})
			}
		}
	}
}

// requireMatrix requires that the output contains every case and no failed one.
func requireMatrix(t *testing.T, out string, mayskip bool) {
	t.Helper()
	require.NotContains(t, out, "FAILED")
	require.Contains(t, out, "all ok\n")
	for _, tc := range cases(few()) {
		require.Regexp(t, `(?m)^(ok|skipped) +`+tc.name+` +\d`, out)
	}
	if !mayskip {
		require.NotContains(t, out, "skipped")
	}
}

// A program runs one implementation. url is its URL if the program listens. result waits for the
// end of the program, which must succeed, and returns its output.
type program func(t *testing.T, args ...string) (url string, result func() string)

func startHere(t *testing.T, args ...string) (string, func() string) {
	return start(t, t.Context(), args...)
}

func dialHere(t *testing.T, args ...string) (string, func() string) {
	return "", func() string {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), args, &out), out.String())
		return out.String()
	}
}

// peer returns a command that ends with ctx at the latest.
func peer(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, "node", append([]string{"peer.mjs"}, args...)...)
	stderr := new(bytes.Buffer)
	cmd.Stderr = stderr
	return cmd, stderr
}

func startPeer(t *testing.T, args ...string) (string, func() string) {
	cmd, stderr := peer(t.Context(), args...)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	url, wait := listening(t, stdout, cmd.Wait)
	return url, func() string {
		out := wait()
		require.Empty(t, stderr.String())
		return out
	}
}

func dialPeer(t *testing.T, args ...string) (string, func() string) {
	return "", func() string {
		cmd, stderr := peer(t.Context(), args...)
		out, err := cmd.Output()
		require.NoError(t, err, string(out)+stderr.String())
		require.Empty(t, stderr.String())
		return string(out)
	}
}
