// Package natsdir keeps a [cluster.Directory] in a key-value bucket of NATS JetStream:
//
//	dir, err := natsdir.Open(ctx, "nats://127.0.0.1:4222", nil)
//	if err != nil {
//		return err
//	}
//	defer dir.Close()
//	node, err := cluster.Join(ctx, pool, dir, &cluster.Options{Secret: secret, Listen: ":7946"})
//
// The records carry who owns which chat, a few hundred bytes each; calls don't go over NATS.
// It needs a NATS server of 2.11 or later.
package natsdir
