-- The newest place of a feed. $1 Site.
SELECT head FROM ssh_access.site_feed WHERE site = $1
