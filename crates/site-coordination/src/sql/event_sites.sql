-- Every Site that had an event.
SELECT site FROM site_coordination.event_counter ORDER BY site
