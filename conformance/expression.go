package main

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// calculate returns the value of an expression of spec/scenarios.md: integers and names with + - *
// / and comparisons, which are 1 or 0, and len(name).
func calculate(text string, names map[string]any) (int64, error) {
	e := &expression{rest: text, names: names}
	v, err := e.comparison()
	if err == nil && e.peek() != "" {
		err = fmt.Errorf("%q is too much", e.rest)
	}
	if err != nil {
		return 0, fmt.Errorf("expression %q: %w", text, err)
	}
	if !v.IsInt64() {
		return 0, fmt.Errorf("expression %q is too large", text)
	}
	return v.Int64(), nil
}

// expression is the unread rest of an expression.
type expression struct {
	rest  string
	names map[string]any
}

// peek returns the next token, which next removes.
func (e *expression) peek() string {
	e.rest = strings.TrimLeft(e.rest, " ")
	end := strings.IndexFunc(e.rest, func(r rune) bool { return !isWord(r) })
	switch {
	case end < 0:
		return e.rest
	case end > 0:
		return e.rest[:end]
	case strings.HasPrefix(e.rest, "<=") || strings.HasPrefix(e.rest, ">="):
		return e.rest[:2]
	}
	return e.rest[:1]
}

func (e *expression) next() string {
	t := e.peek()
	e.rest = e.rest[len(t):]
	return t
}

func isWord(r rune) bool {
	return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func (e *expression) comparison() (*big.Int, error) {
	a, err := e.sum()
	if err != nil {
		return nil, err
	}
	op := e.peek()
	holds, known := map[string]func(int) bool{
		"<": func(c int) bool { return c < 0 }, "<=": func(c int) bool { return c <= 0 },
		">": func(c int) bool { return c > 0 }, ">=": func(c int) bool { return c >= 0 },
	}[op]
	if !known {
		return a, nil
	}
	e.next()
	b, err := e.sum()
	if err != nil {
		return nil, err
	}
	if holds(a.Cmp(b)) {
		return big.NewInt(1), nil
	}
	return new(big.Int), nil
}

func (e *expression) sum() (*big.Int, error) {
	return e.chain(e.product, map[string]operation{"+": (*big.Int).Add, "-": (*big.Int).Sub})
}

func (e *expression) product() (*big.Int, error) {
	return e.chain(e.operand, map[string]operation{"*": (*big.Int).Mul, "/": (*big.Int).Quo})
}

type operation func(z, x, y *big.Int) *big.Int

// chain reads operands with operators of one rank between them.
func (e *expression) chain(operand func() (*big.Int, error), operations map[string]operation) (*big.Int, error) {
	v, err := operand()
	for err == nil && operations[e.peek()] != nil {
		op := e.next()
		var b *big.Int
		if b, err = operand(); err != nil {
			break
		}
		if op == "/" && b.Sign() == 0 {
			return nil, fmt.Errorf("division by zero")
		}
		v = operations[op](new(big.Int), v, b)
	}
	return v, err
}

func (e *expression) operand() (*big.Int, error) {
	t := e.next()
	switch {
	case t == "(":
		v, err := e.sum()
		if err == nil && e.next() != ")" {
			err = fmt.Errorf("a ) is missing")
		}
		return v, err
	case t == "len":
		return e.length()
	case t != "" && t[0] >= '0' && t[0] <= '9':
		n, err := strconv.ParseInt(t, 10, 64)
		return big.NewInt(n), err
	}
	switch v := e.names[t].(type) {
	case int64:
		return big.NewInt(v), nil
	case nil:
		return nil, fmt.Errorf("%q has no value", t)
	default:
		return nil, fmt.Errorf("%q is no number", t)
	}
}

// length reads the argument of "len".
func (e *expression) length() (*big.Int, error) {
	open, name, closing := e.next(), e.next(), e.next()
	b, ok := e.names[name].([]byte)
	if open != "(" || closing != ")" || !ok {
		return nil, fmt.Errorf("len takes the name of a byte string in parentheses")
	}
	return big.NewInt(int64(len(b))), nil
}
