package tunnel

import (
	"io"

	"github.com/asterisque-go/asterisque/pipe"
)

// receiveSide is the direction in which a Conn receives.
type receiveSide struct {
	pipe     *pipe.Pipe   // fixed
	deadline connDeadline // locks itself

	turn  turn       // of the readers
	block pipe.Block // belongs to the holder of turn, as all below; the last one received
	rest  []byte     // the unread part of its payload
	err   error      // why nothing more comes
}

func (i *receiveSide) init(p *pipe.Pipe) {
	i.pipe = p
	i.deadline.bound = newBound()
	i.turn = newTurn()
}

// read waits for bytes, and returns those of at most one Block.
func (i *receiveSide) read(b []byte) (int, error) {
	bound := i.deadline.current()
	if err := i.turn.take(bound); err != nil {
		return 0, err
	}
	defer i.turn.pass()
	if len(b) == 0 {
		return 0, nil
	}
	if err := i.fill(bound); err != nil {
		return 0, err
	}
	n := copy(b, i.rest)
	if i.rest = i.rest[n:]; len(i.rest) == 0 {
		i.drop()
	}
	return n, nil
}

// next waits for bytes, and returns their Block, which its caller releases.
func (i *receiveSide) next() (b pipe.Block, payload []byte, err error) {
	bound := i.deadline.current()
	if err := i.turn.take(bound); err != nil {
		return b, nil, err
	}
	defer i.turn.pass()
	if err := i.fill(bound); err != nil {
		return b, nil, err
	}
	b, payload = i.block, i.rest
	i.block, i.rest = pipe.Block{}, nil
	return b, payload, nil
}

// end ends the direction; cause is the error of later reads.
func (i *receiveSide) end(cause error) {
	i.deadline.end(cause)
	i.pipe.Stop()
}

// fill waits until there are bytes to read.
func (i *receiveSide) fill(bound *deadlineContext) error {
	for len(i.rest) == 0 {
		if i.err != nil {
			return i.err
		}
		i.drop()
		b, err := i.pipe.Recv(bound)
		if cause := bound.cause(); err != nil && cause != nil {
			return cause
		}
		if i.err = i.check(b, err); i.err == nil {
			i.block, i.rest = b, b.Payload
		}
	}
	return nil
}

// check returns err, or ErrMissing if Blocks are missing before the one from Recv.
func (i *receiveSide) check(b pipe.Block, err error) error {
	missing := err == nil && b.Skipped > 0 || err == io.EOF && i.pipe.Skipped() > 0
	if !missing {
		return err
	}
	b.Release()
	i.pipe.Abort(ErrMissing)
	return ErrMissing
}

// drop releases the memory of the Block.
func (i *receiveSide) drop() {
	i.block.Release()
	i.block, i.rest = pipe.Block{}, nil
}
