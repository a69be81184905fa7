"""One per node and attempt: starts ranks, holds the lease, ships the spool. `python -m trackbed.supervisor FOLDER [--salvage]`.

The story is told in `docs/explanation/attempt.md`. From the door inwards:

    main      takes the folder                             attempt   what all parts share
    living    prepare, start, watch, obey                  salvage   the last work for a dead supervisor
    prepare   tree, data, environment, `latest`            launch    commands and environments of the ranks
    ranks     processes: start, watch, signal, end         capture   their output, byte by byte
    stopping  orders, and one answer for all ranks         evidence  what happened → a cause
    lease     what the server wants                        sender    spool and reports to the server
    saving    checkpoints of programs without the SDK      ending    last checkpoint, outputs, exit report
    relay     the ranks' loopback address                  vitals    how busy the node is
"""
