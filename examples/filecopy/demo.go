package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/asterisque-go/asterisque/wire"
)

// copyHere generates a folder with size bytes, copies it over a session within this process,
// compares the two folders, and removes both.
func copyHere(ctx context.Context, size int64, stdout, stderr io.Writer) (err error) {
	temp, err := os.MkdirTemp("", "filecopy-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	from, to := filepath.Join(temp, "village"), filepath.Join(temp, "copy")
	if err := makeUp(from, size); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "copies %s to %s, over TCP\n", from, to)
	if err := copyOver(ctx, from, to, stdout, stderr); err != nil {
		return err
	}
	n, err := compare(from, filepath.Join(to, "village"))
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "the SHA-256 of %d files are the same on both sides; both folders are removed\n", n)
	return nil
}

// copyOver runs the receiver and the sender in this process.
func copyOver(ctx context.Context, from, to string, stdout, stderr io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ln, err := wire.Listen(ctx, "tcp://127.0.0.1:0", wire.Options{})
	if err != nil {
		return err
	}
	received := make(chan error)
	go func() { received <- receiveFrom(ctx, ln, to, io.Discard, stderr) }()
	err = sendTo(ctx, ln.URL(), from, stdout, stderr)
	stop()
	return errors.Join(err, <-received)
}

// makeUp writes files of size bytes in total: a large one, a medium one, a small one, an empty one,
// and one in a subfolder.
func makeUp(dir string, size int64) error {
	large, middling := size*5/8, size/4
	small := min(1000, size/16)
	rest := size - large - middling - small
	if err := os.MkdirAll(filepath.Join(dir, "hut"), 0o755); err != nil {
		return err
	}
	for name, size := range map[string]int64{"banquet.mov": large, "forest.raw": middling, "potion.txt": small, "silence.wav": 0, "hut/menhir.obj": rest} {
		if err := noise(filepath.Join(dir, filepath.FromSlash(name)), size); err != nil {
			return err
		}
	}
	return nil
}

// noise writes a file of random bytes.
func noise(path string, size int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	random := rand.NewChaCha8(sha256.Sum256([]byte(path)))
	_, err = io.CopyN(file, random, size)
	return errors.Join(err, file.Close())
}

// compare returns the number of files in and below a, and an error unless b has the same.
func compare(a, b string) (files int, err error) {
	src, err := openSource(a)
	if err != nil {
		return 0, err
	}
	defer src.root.Close()
	for _, o := range src.files {
		below, err := filepath.Rel(filepath.Base(a), filepath.FromSlash(o.Name))
		if err != nil {
			return 0, err
		}
		first, err := sumOf(filepath.Join(a, below))
		if err != nil {
			return 0, err
		}
		second, err := sumOf(filepath.Join(b, below))
		if err != nil {
			return 0, err
		}
		if !bytes.Equal(first, second) {
			return 0, fmt.Errorf("%q differs: %x became %x", o.Name, first, second)
		}
	}
	return len(src.files), nil
}

// sumOf returns the SHA-256 of a file.
func sumOf(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return sum.Sum(nil), err
}
