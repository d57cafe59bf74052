package stdiowire_test

import (
	"context"
	"fmt"
	"log"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire/stdiowire"
)

// This is the parent. The complete child is:
//
//	func main() {
//		service := asterisque.NewService()
//		echo.Handle(service, func(_ context.Context, s string) (string, error) { return s, nil })
//		w, err := stdiowire.Stdio() // from here on, printing goes to standard error
//		if err != nil {
//			log.Fatal(err)
//		}
//		node := asterisque.NewNode(asterisque.WithService(service))
//		session, err := node.Accept(context.Background(), w)
//		if err != nil {
//			log.Fatal(err)
//		}
//		<-session.Done()
//	}
func ExampleStart() {
	ctx := context.Background()
	w, err := stdiowire.Start(program("serve")) // or exec.Command("./plugin", "-v")
	if err != nil {
		log.Panic(err)
	}
	defer w.Close() // waits for the end of the child
	node := asterisque.NewNode()
	defer node.Close()
	session, err := node.Attach(ctx, w)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(echo.Call(ctx, session, "hello, child"))
	// Output: hello, child <nil>
}
