package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/stream"
)

// partSuffix marks an incomplete file.
const partSuffix = ".part"

// receiver writes what peers send into one folder. A file name from a peer is never trusted: root
// resolves every name, and rejects those that lead out of the folder, by ".." or by a symbolic
// link.
type receiver struct {
	root *os.Root    // these lock themselves
	log  *log.Logger //

	mu sync.Mutex
	// guarded by mu; files that are being written; each is closed at the end
	busy map[string]chan struct{}
}

func newReceiver(root *os.Root, log *log.Logger) *receiver {
	return &receiver{root: root, log: log, busy: map[string]chan struct{}{}}
}

// service returns the service for peers that send files here.
func (r *receiver) service() *asterisque.Service {
	svc := asterisque.NewService()
	put.Handle(svc, r.receive)
	return svc
}

// receive is the handler of put.
func (r *receiver) receive(ctx context.Context, o Offer, p *asterisque.Pipe[Have, From]) (none struct{}, err error) {
	name, err := localName(o)
	if err != nil {
		return none, err
	}
	release, err := r.claim(ctx, name)
	if err != nil {
		return none, err
	}
	defer release()
	there, err := r.look(name, o.Size)
	if err != nil {
		return none, err
	}
	if err := p.Send(ctx, there.have()); err != nil {
		return none, err
	}
	from, err := p.Recv(ctx)
	switch {
	case err != nil:
		return none, err
	case from.Offset == 0:
		there = nothing()
	case from.Offset != there.size:
		return none, errRefused.Withf("%d bytes are there, and not the %d that the sender leaves out", there.size, from.Offset)
	}
	if err := r.store(name, o.Size, there, stream.NewReader(p.Untyped())); err != nil {
		r.log.Printf("%q: %v", o.Name, err)
		return none, err
	}
	r.log.Printf("%q, %s, of which %s came now", o.Name, amount(o.Size), amount(o.Size-from.Offset))
	return none, nil
}

// localName returns the name of a file in the form of this system, or errRefused.
func localName(o Offer) (string, error) {
	// rejects "..", absolute paths, and special names of this system
	name, err := filepath.Localize(o.Name)
	switch {
	case err != nil || name == ".":
		return "", errRefused.Withf("%q is no name for a file below a folder", o.Name)
	case strings.HasSuffix(strings.ToLower(name), partSuffix):
		return "", errRefused.Withf("%q is a name for a file that is not complete", o.Name)
	case o.Size < 0:
		return "", errRefused.Withf("%q is said to have %d bytes", o.Name, o.Size)
	}
	return name, nil
}

// claim waits until no other call writes the file called name: an earlier attempt may not have
// noticed its failure yet.
func (r *receiver) claim(ctx context.Context, name string) (release func(), err error) {
	// where names that differ only in case are the same file, they have to wait too
	key := strings.ToLower(name)
	for {
		free, claimed := r.tryClaim(key)
		if claimed {
			return func() { r.release(key) }, nil
		}
		select {
		case <-free:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryClaim claims the file, or returns a channel that is closed when it may be free.
func (r *receiver) tryClaim(key string) (free <-chan struct{}, claimed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if free := r.busy[key]; free != nil {
		return free, false
	}
	r.busy[key] = make(chan struct{})
	return nil, true
}

func (r *receiver) release(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.busy[key])
	delete(r.busy, key)
}

// beginning is the part of a file that the receiver has.
type beginning struct {
	size  int64
	sum   hash.Hash // of these bytes
	whole bool      // it is complete, under its final name
}

func nothing() beginning { return beginning{sum: sha256.New()} }

func (b beginning) have() Have { return Have{Size: b.size, Sum: [sha256.Size]byte(b.sum.Sum(nil))} }

// look returns the existing part of a file that is to have size bytes: the rest of an interrupted
// attempt, or else a file of that name, which may be the same.
func (r *receiver) look(name string, size int64) (beginning, error) {
	for _, path := range []string{name + partSuffix, name} {
		info, err := r.root.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return beginning{}, err
		case !info.Mode().IsRegular() || info.Size() > size || path == name && info.Size() < size:
			continue
		}
		b := nothing()
		b.whole = path == name
		b.size, err = r.hash(b.sum, path)
		return b, err
	}
	return nothing(), nil
}

// hash adds the content of a file to sum and returns its size.
func (r *receiver) hash(sum hash.Hash, path string) (int64, error) {
	file, err := r.root.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return io.Copy(sum, file)
}

// store writes the received bytes behind the existing ones, up to size bytes. If the checksum after
// that is right, it gives the file its name, and otherwise removes it. If fewer bytes arrive, those
// stay for the next attempt.
func (r *receiver) store(name string, size int64, there beginning, from io.Reader) error {
	part := name + partSuffix
	if !there.whole {
		if err := r.extend(part, size, there, from); err != nil {
			return err
		}
	}
	var want [sha256.Size]byte
	if _, err := io.ReadFull(from, want[:]); err != nil {
		return err
	}
	right := [sha256.Size]byte(there.sum.Sum(nil)) == want
	switch {
	case right && there.whole:
		return nil
	case right:
		return r.root.Rename(part, name)
	case !there.whole:
		r.root.Remove(part) // if it stays, the next attempt detects that it is wrong
	}
	return errDamaged
}

// extend writes the received bytes behind the existing ones of a part, until it has size bytes, and
// adds them to the hash.
func (r *receiver) extend(part string, size int64, there beginning, from io.Reader) (err error) {
	if err := r.root.MkdirAll(filepath.Dir(part), 0o755); err != nil {
		return err
	}
	file, err := r.root.OpenFile(part, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := file.Truncate(there.size); err != nil {
		return err
	}
	if _, err := file.Seek(there.size, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.CopyN(io.MultiWriter(file, there.sum), from, size-there.size); err != nil {
		return err
	}
	return file.Sync() // the final name must never be on bytes that a power failure can lose
}
