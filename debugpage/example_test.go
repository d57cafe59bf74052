package debugpage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/debugpage"
)

func ExampleHandler() {
	node := asterisque.NewNode(asterisque.WithID("worker-7"))
	defer node.Close()
	mux := http.NewServeMux()
	mux.Handle("/debug/asterisque", debugpage.Handler(node)) // on a port that only you reach

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/asterisque", nil))
	_, page, _ := strings.Cut(w.Body.String(), "\n") // the first line is the time
	sessions, workers, _ := strings.Cut(strings.TrimSpace(page), "; ")
	fmt.Println(sessions)
	fmt.Println(workers)
	// Output:
	// NODE worker-7: 0 sessions, 0 calls run, 0 wait
	// 0 workers busy (0 at most), 0 idle, 0 sessions wait for one
}
