"""The event-sourced graph. It knows no database and no incident."""
