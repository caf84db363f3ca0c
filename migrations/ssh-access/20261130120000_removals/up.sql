-- Whoever watches an agent looks for removals among changes of which most may be additions: of a Site
-- that was filled and whose agent never came, all of them.
CREATE INDEX site_change_removal ON site_change (site, seq) WHERE operation = 'remove';
