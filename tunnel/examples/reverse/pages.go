package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// strokes is how often the clock strikes.
const strokes = 5

// pages is the default content of the machine, unless a folder is configured.
func pages(name string) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "Nobody can connect to me, and yet you are here. Welcome! %s", name)
	})
	m.HandleFunc("GET /library/{volumes}", library)
	m.HandleFunc("GET /clock", clock)
	return m
}

// library sends the requested number of MiB, with their SHA-256 behind them.
func library(w http.ResponseWriter, r *http.Request) {
	volumes, err := strconv.ParseInt(r.PathValue("volumes"), 10, 64)
	if err != nil || volumes < 1 || volumes > mostMiB {
		http.Error(w, "the library has 1 to 65536 volumes of 1 MiB", http.StatusNotFound)
		return
	}
	w.Header().Set("Trailer", "Digest")
	sum := sha256.New()
	volume := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(volume)
	for range volumes {
		if _, err := io.MultiWriter(w, sum).Write(volume); err != nil {
			return // the visitor has left
		}
		volume[0]++
	}
	w.Header().Set("Digest", hex.EncodeToString(sum.Sum(nil)))
}

// clock sends a line each time it strikes.
func clock(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range strokes {
		fmt.Fprintf(w, "data: stroke %d\n\n", i+1)
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-time.After(40 * time.Millisecond):
		case <-r.Context().Done():
			return
		}
	}
}
