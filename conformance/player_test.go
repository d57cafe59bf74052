package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// scripted is a peer that sends fixed frames, independent of its input.
type scripted struct {
	frames []string // in hexadecimal
	peers  sync.WaitGroup
}

func (s *scripted) next(context.Context, []byte) (*peerLink, error) {
	here, there := wire.Pipe()
	s.peers.Go(func() { // until the player closes its end
		for _, f := range s.frames {
			b, _ := hex.DecodeString(f)
			there.WriteFrames([][]byte{b})
		}
		for {
			if _, err := there.ReadFrame(largest); err != nil {
				there.Close()
				return
			}
		}
	})
	return newLink(here), nil
}

func (s *scripted) close() { s.peers.Wait() }

// played returns the outcome of a scenario without a handshake.
func played(t *testing.T, frames []string, steps string) error {
	t.Helper()
	s, err := load([]byte(`{"version": 1, "scenarios": [{"name": "a", "section": "s", "handshake": false, "steps": [` + steps + `]}]}`))
	require.NoError(t, err)
	from := &scripted{frames: frames}
	defer from.close()
	return playOne(t.Context(), s, s.Scenarios[0], from, playOptions{connecting: true, patience: patience}).err
}

// Received values are matched against patterns.
func TestMatch_Patterns(t *testing.T) {
	result := "840302f5" + "4161" // [3, 2, true, h'61']
	for name, tc := range map[string]struct {
		frames []string
		steps  string
		fails  string
	}{
		"as expected":             {[]string{result}, `{"expect": [3, "pipe 2", true, "h'61'"]}`, ""},
		"a name":                  {[]string{result, result}, `{"expect": [3, "$p", true, "_"]}, {"expect": [3, "$p", "..."]}`, ""},
		"another value of a name": {[]string{result, "840304f54161"}, `{"expect": [3, "$p", true, "_"]}, {"expect": [3, "$p", "..."]}`, `[3, 4, true, h'61'] came`},
		"another payload":         {[]string{result}, `{"expect": [3, "pipe 2", true, "h'62'"]}`, `came`},
		"one of":                  {[]string{result}, `{"expect_one_of": [[3, 2, null, "..."], [3, 2, true, {"size": 1}]]}`, ""},
		"in any order":            {[]string{result, "83000305"}, `{"expect_all": [[0, 3, 5], [3, 2, "..."]]}`, ""},
		"nothing":                 {nil, `{"expect": [3, "..."], "within": 20}`, "nothing came in time"},
		"silence":                 {nil, `{"silent": 20}`, ""},
		"no silence":              {[]string{result}, `{"silent": 1000}`, "expected nothing"},
		"a Ping on the way":       {[]string{"83000201", result}, `{"expect": [3, "..."]}`, ""},
		"a Credit on the way":     {[]string{"840004f605", result}, `{"expect": [3, "..."]}, {"check": "=opens >= 5"}`, ""},
		"an Ack without resume":   {[]string{"83000501", result}, `{"expect": [3, "..."]}`, "[0, 5, 1] came"},
		"not the shortest form":   {[]string{"84031802f54161"}, `{"expect": [3, "..."]}`, "not encoded as section 3"},
		"no CBOR":                 {[]string{"ff"}, `{"until": [3, "..."]}`, "no CBOR"},
		"a Close of the session":  {[]string{result, "8400070b6178"}, `{"closes": [11, 16]}`, ""},
		"another code":            {[]string{"8400070c6178"}, `{"closes": 11}`, `[0, 7, 12, "x"] came`},
		"what is checked":         {nil, `{"let": {"n": 5}}, {"check": "=n > 5"}`, "expected that n > 5"},
		"a message in parts":      {[]string{"8404024384030206", "83000201", "83040243f54161"}, `{"expect": [3, "pipe 2", true, "h'61'"]}`, ""},
		"another one in parts":    {[]string{"8404024384030206", "83040243f54161"}, `{"expect": [3, "pipe 2", true, "h'62'"]}`, "[3, 2, true, h'61'] came"},
		"a message given up":      {[]string{"8404024384030206", "830402f6", result}, `{"expect": [3, "..."]}`, ""},
		"a Part that is expected": {[]string{"8404024384030206"}, `{"expect": [4, "pipe 2", {"size": 3}, 6]}`, ""},
		"a Part of nothing":       {[]string{"83040243f54161"}, `{"expect": [3, "..."]}`, "[4, 2, h'f54161'] came"},
		"parts beyond the whole":  {[]string{"8404024384030205", "83040243f54161"}, `{"expect": [3, "..."]}`, "[4, 2, h'f54161'] came"},
		"a map":                   {[]string{"84000101a1041903e8"}, `{"expect": [0, 1, 1, {"map": {"4": {"at_most": 1000}, "5": null}}]}, {"check": "=max_message"}`, ""},
	} {
		err := played(t, tc.frames, tc.steps)
		if tc.fails == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, tc.fails, name)
		}
	}
}

// Outcomes are reported in each form.
func TestReport_EachForm(t *testing.T) {
	all := []scenarioOutcome{
		{scenario: scenario{Name: "good", Section: "s"}},
		{scenario: scenario{Name: "bad", Section: "s"}, err: os.ErrInvalid},
		{scenario: scenario{Name: "absent", Section: "s"}, skipped: "the peer is without keys"},
	}
	told := func(p printer) {
		p.begin(len(all))
		for _, o := range all {
			p.tell(o)
		}
		p.end(all, 0)
	}
	var text, tapped bytes.Buffer
	told(linePrinter{out: &text})
	require.Contains(t, text.String(), "FAILED   s                        bad\n         invalid argument\n")
	require.Contains(t, text.String(), "1 ok, 1 FAILED, 1 skipped in 0.0 s\n")
	told(&tapPrinter{out: &tapped})
	require.Equal(t, "TAP version 13\n1..3\nok 1 - s: good\nnot ok 2 - s: bad\n  ---\n  message: \"invalid argument\"\n  ...\nok 3 - s: absent # SKIP the peer is without keys\n", tapped.String())
	name := filepath.Join(t.TempDir(), "out.xml")
	require.NoError(t, writeJUnit(name, all, 0))
	file, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(file), "<testcase"))
	require.Contains(t, string(file), `<failure message="invalid argument">`)
}
