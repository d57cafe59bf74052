package classicwire_test

import (
	"context"
	"fmt"
	"log"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/wire"
	_ "github.com/asterisque-go/asterisque/wire/classicwire" // adds classic://
)

// The example contains both programs; either may be a program of the original.
func Example() {
	ctx := context.Background()
	type person struct {
		Name string
		Age  int32
	}
	// String describe(String name, int age)
	describe := asterisque.Func[person, string](12, "describe")
	options := []asterisque.Option{asterisque.WithCodecs(classic.MessagePack, classic.Simple)}

	svc := asterisque.NewService()
	describe.Handle(svc, func(_ context.Context, p person) (string, error) { return fmt.Sprintf("%s is %d", p.Name, p.Age), nil })
	there := asterisque.NewNode(append(options, asterisque.WithService(svc))...)
	defer there.Close()
	ln, err := wire.Listen(ctx, "classic://127.0.0.1:0", wire.Options{})
	if err != nil {
		log.Panic(err)
	}
	go there.Serve(ctx, ln)

	here := asterisque.NewNode(options...)
	defer here.Close()
	s, err := here.Dial(ctx, ln.URL())
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(describe.Call(ctx, s, person{"Ada", 36}))
	// Output: Ada is 36 <nil>
}
