"""The market maker: its prices shown and streamed, its firm quotes signed, its promises kept."""
