package stdiowire

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
)

// mostLine is how many bytes of a line are forwarded in one piece.
const mostLine = 16 << 10

// mostQuoted is how many bytes of a text are quoted.
const mostQuoted = 60

// copyLines copies from to its end, each line by a separate Write, and returns the last non-empty
// line. Errors of to are ignored: the child has not caused them.
func copyLines(to io.Writer, from io.Reader) (last string) {
	r := bufio.NewReaderSize(from, mostLine)
	for {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 {
			to.Write(line)
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			last = string(text[:min(len(text), 200)])
		}
		if err != nil && err != bufio.ErrBufferFull {
			return last
		}
	}
}

// logWriter logs lines.
type logWriter struct {
	log   *slog.Logger
	child string
}

// Write implements io.Writer.
func (w logWriter) Write(line []byte) (int, error) {
	w.log.Info("standard error of a child", "child", w.child, "line", string(bytes.TrimRight(line, "\r\n")))
	return len(line), nil
}

// outputHead keeps the first bytes of a child's output, as long as they are text. A frame is never
// mistaken for text: a length of four letters would be above 150 MB.
type outputHead struct {
	first []byte
	done  bool // further text is ignored
}

func (q *outputHead) add(p []byte) {
	for _, b := range p {
		if q.done = q.done || len(q.first) == mostQuoted || !printable(b); q.done {
			break
		}
		q.first = append(q.first, b)
	}
	if q.done && len(q.first) < 4 {
		q.first = nil
	}
}

func printable(b byte) bool { return b >= ' ' && b != 0x7f || b >= '\t' && b <= '\r' || b == 0x1b }

// String returns the text, or nothing.
func (q *outputHead) String() string { return string(q.first) }
