package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// The content of the conversation does not matter: a session does not depend on the kind of its
// Wire. So it is the same as over any other.
var (
	morse = asterisque.Func[string, string](10, "morse")
	// offered by the caller, for the answerer to call back
	beep = asterisque.Func[string, bool](11, "beep")
)

// answer serves one session over w to its end.
func answer(ctx context.Context, w wire.Wire) error {
	svc := asterisque.NewService()
	morse.Handle(svc, func(ctx context.Context, text string) (string, error) {
		var signs []string
		for _, letter := range strings.ToUpper(text) {
			sign, ok := alphabet[letter]
			if !ok {
				return "", fmt.Errorf("%q has no sign", letter)
			}
			signs = append(signs, sign)
		}
		all := strings.Join(signs, " ")
		_, err := beep.Call(ctx, asterisque.SessionOf(ctx), all)
		return all, err
	})
	node := asterisque.NewNode(asterisque.WithID("answerer"), asterisque.WithService(svc))
	defer node.Close()
	sess, err := node.Accept(ctx, w)
	if err != nil {
		return err
	}
	select {
	case <-sess.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call makes a session over w, uses it, and shuts it down gracefully.
func call(ctx context.Context, w wire.Wire, out io.Writer) error {
	svc := asterisque.NewService()
	beep.Handle(svc, func(_ context.Context, signs string) (bool, error) {
		fmt.Fprintf(out, "  beep: %s\n", signs)
		return true, nil
	})
	node := asterisque.NewNode(asterisque.WithID("caller"), asterisque.WithService(svc))
	defer node.Close()
	sess, err := node.Attach(ctx, w)
	if err != nil {
		return err
	}
	for _, text := range []string{"sos", "asterisk"} {
		fmt.Fprintf(out, "morse(%q)\n", text)
		signs, err := morse.Call(ctx, sess, text)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  is  %q\n", signs)
	}
	return node.Shutdown(ctx)
}

var alphabet = map[rune]string{
	'A': "·−", 'B': "−···", 'C': "−·−·", 'D': "−··", 'E': "·", 'F': "··−·", 'G': "−−·", 'H': "····", 'I': "··", 'J': "·−−−", 'K': "−·−", 'L': "·−··", 'M': "−−",
	'N': "−·", 'O': "−−−", 'P': "·−−·", 'Q': "−−·−", 'R': "·−·", 'S': "···", 'T': "−", 'U': "··−", 'V': "···−", 'W': "·−−", 'X': "−··−", 'Y': "−·−−", 'Z': "−−··",
}
