"""The incident application on top of the event-sourced graph."""
