package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/stream"
)

// source is the data to send: one file, or all in a folder and below.
type source struct {
	root    *os.Root // the folder above it
	files   []Offer
	size    int64    // of all files
	skipped []string // neither files nor folders
}

// openSource lists the files at path, so that the sender knows the total size before it begins.
// Empty folders, modes and times are not transferred.
func openSource(path string) (*source, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		// a link given as path is followed, while links below it are not
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	s := &source{root: root}
	if err := fs.WalkDir(root.FS(), filepath.Base(path), s.add); err != nil {
		root.Close()
		return nil, err
	}
	return s, nil
}

// add handles an entry of WalkDir.
func (s *source) add(name string, entry fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case entry.IsDir():
		return nil
	case !entry.Type().IsRegular():
		s.skipped = append(s.skipped, name)
		return nil
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	s.files = append(s.files, Offer{Name: name, Size: info.Size()})
	s.size += info.Size()
	return nil
}

// send sends all files, one after the other, and reports the progress to p.
func (s *source) send(ctx context.Context, sess *asterisque.Session, p *progress) error {
	for _, o := range s.files {
		if err := s.sendFile(ctx, sess, o, p); err != nil {
			return fmt.Errorf("%q: %w", o.Name, err)
		}
	}
	return nil
}

func (s *source) sendFile(ctx context.Context, sess *asterisque.Session, o Offer, p *progress) error {
	ctx, abort := context.WithCancel(ctx)
	defer abort() // abort the call after any local error
	file, err := s.root.Open(filepath.FromSlash(o.Name))
	if err != nil {
		return err
	}
	defer file.Close()
	call, err := put.Open(ctx, sess, o)
	if err != nil {
		return err
	}
	have, err := call.Recv(ctx)
	if err != nil {
		return err
	}
	offset, sum, err := skip(file, have)
	if err != nil {
		return err
	}
	if err := call.Send(ctx, From{offset}); err != nil {
		return err
	}
	p.begin(sess, o, offset)
	w := stream.NewWriter(call.Untyped())
	if err := sendRest(w, file, o.Size-offset, sum, p); err != nil {
		return err
	}
	if _, err := call.Result(ctx); err != nil {
		return err
	}
	p.end()
	return nil
}

// skip reads the part that the receiver has. If it is the beginning of this file, it is skipped;
// otherwise the file is sent from its first byte.
func skip(file *os.File, have Have) (offset int64, sum hash.Hash, err error) {
	sum = sha256.New()
	n, err := io.CopyN(sum, file, max(have.Size, 0))
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return 0, nil, err
	case n == have.Size && [sha256.Size]byte(sum.Sum(nil)) == have.Sum:
		return n, sum, nil
	}
	sum.Reset()
	_, err = file.Seek(0, io.SeekStart)
	return 0, sum, err
}

// sendRest sends the next n bytes of a file, and then the checksum of the whole file.
func sendRest(w *stream.Writer, file io.Reader, n int64, sum hash.Hash, p *progress) error {
	sent, err := w.ReadFrom(io.TeeReader(io.LimitReader(file, n), io.MultiWriter(sum, p)))
	if err != nil {
		return err
	}
	if sent < n {
		return fmt.Errorf("%d bytes are missing at its end: it was truncated", n-sent)
	}
	if _, err := w.Write(sum.Sum(nil)); err != nil {
		return err
	}
	return w.Close()
}
